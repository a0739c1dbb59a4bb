"""The choices that define a training run, checked once, when they are written down."""

from dataclasses import dataclass

from transformer_lesson.model.config import CheckedConfig, _is_int, _is_positive, _is_probability

TRAINING_CHOICES = {
    "schedule": ("linear", "cosine", "noam", "constant"),
    "optimizer": ("adamw", "adam"),
    "precision": ("float32", "bfloat16"),
}


@dataclass(frozen=True)
class TrainConfig(CheckedConfig):
    """Everything that `transformer_lesson.training.train` needs to know besides the data.

    Args:
        steps: how many batches to learn from; one step is one batch and one update.
        learning_rate: the highest rate that the schedule reaches (by default 1e-3). With
            schedule "noam", which brings a rate of its own, a factor on that (by default 1).
        schedule: what follows the warm-up: "linear" falls to zero, "cosine" to a tenth,
            "constant" stays, "noam" is the paper's (equation 3).
        warmup_steps: steps over which the rate rises in proportion to the step (4000 in the
            paper, for 100,000 steps); 0 for none.
        optimizer: "adamw" (today's practice) or "adam" (the paper).
        betas: how much of their past Adam's two averages keep at each step (paper: 0.9, 0.98).
        epsilon: keeps Adam's division away from zero (1e-9).
        weight_decay: share of rate * weight that AdamW takes from each weight of a matrix at
            each step; biases and norms are spared. The paper has none.
        clip: longest gradient, all weights together, or `None` not to shorten any. The paper
            does not clip.
        label_smoothing: share of the target probability that is spread over all tokens (0.1).
        precision: "float32", or "bfloat16" for the matrix products of the forward and backward
            pass; weights, loss and optimizer stay in float32.
        seed: of the random numbers that training draws (dropout).
        gradient_accumulation_steps: parts that a batch is learned from one after the other; their
            gradients are added up. Less memory, the same update.
        activation_checkpointing: forget what the blocks computed and compute it again for the
            gradients. Less memory, the same update, about a third more time.

    Raises:
        ValueError: a value breaks a rule; the message names field, value and rule.

    Source: "Attention Is All You Need" (2017), sections 5.3 and 5.4.
    """

    steps: int
    learning_rate: float | None = None
    schedule: str = "linear"
    warmup_steps: int = 50
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip: float | None = 1.0
    label_smoothing: float = 0.0
    precision: str = "float32"
    seed: int = 0
    gradient_accumulation_steps: int = 1
    activation_checkpointing: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "gradient_accumulation_steps"):
            self._require(name, _is_int(self._get(name)) and self._get(name) >= 1, "an int >= 1")
        self._require(
            "activation_checkpointing",
            isinstance(self.activation_checkpointing, bool),
            "True or False",
        )
        for name in ("warmup_steps", "seed"):
            self._require(name, _is_int(self._get(name)) and self._get(name) >= 0, "an int >= 0")
        for name in ("learning_rate", "clip"):
            value = self._get(name)
            self._require(name, value is None or _is_positive(value), "None or a number > 0")
        self._require("epsilon", _is_positive(self.epsilon), "a number > 0")
        decay_ok = self.weight_decay == 0 or _is_positive(self.weight_decay)
        self._require("weight_decay", decay_ok, "a number >= 0")
        smoothing_ok = _is_probability(self.label_smoothing)
        self._require("label_smoothing", smoothing_ok, "a probability in [0, 1)")
        pair = isinstance(self.betas, tuple) and len(self.betas) == 2
        betas_ok = pair and all(_is_probability(beta) for beta in self.betas)
        self._require("betas", betas_ok, "a pair (beta_1, beta_2) of numbers in [0, 1)")
        self._require_choices(TRAINING_CHOICES)
        warmup_ok = self.schedule != "noam" or self.warmup_steps >= 1
        self._require("warmup_steps", warmup_ok, 'an int >= 1 with schedule="noam"')
        decay_ok = self.optimizer == "adamw" or self.weight_decay == 0
        self._require("weight_decay", decay_ok, '0 with optimizer="adam"; "adamw" decays weights')

    @property
    def peak_learning_rate(self) -> float:
        """`learning_rate`, or its default: 1e-3, and a factor of 1 with schedule "noam"."""
        default = 1.0 if self.schedule == "noam" else 1e-3
        return default if self.learning_rate is None else self.learning_rate
