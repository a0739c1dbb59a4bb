"""The choices that define a training run, checked once, when they are written down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from transformer_lesson.model.config import (
    CheckedConfig,
    Rule,
    count,
    is_number,
    one_of,
    optional,
    positive,
    probability,
    size,
    switch,
    tuple_of,
)

PRECISIONS = ("float32", "bfloat16")
share = Rule("a number >= 0", lambda x: is_number(x) and 0 <= x < math.inf)


@dataclass(frozen=True)
class TrainConfig(CheckedConfig):
    """Everything that `transformer_lesson.training.train` needs besides the data.

    Args:
        steps: how many batches to learn from; one step is one batch and one update.
        learning_rate: the highest rate that the schedule reaches (by default 1e-3). With
            schedule "noam", which brings a rate of its own, a factor on that (by default 1).
        schedule: what follows the warm-up: "linear" falls to zero, "cosine" to a tenth,
            "constant" stays, "wsd" stays and falls to zero in the last fifth (warm-up, stable,
            decay), "noam" is the paper's (equation 3).
        warmup_steps: steps over which the rate rises in proportion to the step (4000 in the
            paper, for 100,000 steps); 0 for none. By default 50, or half of the steps if these
            are fewer than 100.
        optimizer: "adamw" (today's practice) or "adam" (the paper).
        betas: how much of their past Adam's two averages keep at each step (paper: 0.9, 0.98).
        epsilon: keeps Adam's division away from zero (1e-9).
        weight_decay: share of rate * weight that AdamW takes from each weight of a matrix at
            each step; biases and norms are spared. The paper has none.
        clip: longest gradient, all weights together, or `None` not to shorten any. The paper
            does not clip.
        label_smoothing: share of the target probability that is spread over all tokens (0.1).
        precision: "float32", or "bfloat16" for the matrix products of the forward and backward
            pass; weights, loss and optimizer stay in float32. "auto" is the one that is faster
            here: `train` times both on the first batch. With TRANSFORMER_LESSON_PLAIN=1 in the
            environment that is always float32.
        seed: of the random numbers that training draws (dropout).
        gradient_accumulation_steps: parts in which a batch is learned, one after the other; their
            gradients are added up. Less memory, the same update.
        activation_checkpointing: forget what the blocks computed, and recompute it for the
            gradients. Less memory, the same update, about a third more time.

    Raises:
        ValueError: a value breaks a rule; the message names field, value and rule.

    Source: "Attention Is All You Need" (2017), sections 5.3 and 5.4.
    """

    steps: int = size()
    learning_rate: float | None = optional(positive)(None)
    schedule: str = one_of("linear", "cosine", "noam", "constant", "wsd")
    warmup_steps: int | None = optional(count)(None)
    optimizer: str = one_of("adamw", "adam")
    betas: Sequence[float] = tuple_of(probability, 2)((0.9, 0.98))
    epsilon: float = positive(1e-9)
    weight_decay: float = share(0.0)
    clip: float | None = optional(positive)(1.0)
    label_smoothing: float = probability(0.0)
    precision: str = one_of(*PRECISIONS, "auto")
    seed: int = count(0)
    gradient_accumulation_steps: int = size(1)
    activation_checkpointing: bool = switch(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        warmup_ok = self.schedule != "noam" or self.warmup_steps != 0
        self.require("warmup_steps", warmup_ok, 'an int >= 1 with schedule="noam"')
        decay_ok = self.optimizer == "adamw" or self.weight_decay == 0
        self.require("weight_decay", decay_ok, '0 with optimizer="adam"; "adamw" decays weights')

    @property
    def steps_of_warmup(self) -> int:
        """`warmup_steps`, or its default: 50, but at most half of the steps, and at least 1."""
        default = min(50, max(1, self.steps // 2))
        return default if self.warmup_steps is None else self.warmup_steps

    @property
    def peak_learning_rate(self) -> float:
        """`learning_rate`, or its default: 1e-3, and a factor of 1 with schedule "noam"."""
        default = 1.0 if self.schedule == "noam" else 1e-3
        return default if self.learning_rate is None else self.learning_rate
