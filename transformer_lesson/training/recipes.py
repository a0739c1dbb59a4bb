"""Sizes and settings that work, per corpus: lessons, benchmarks and the command line share them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training.config import TrainConfig


@dataclass(frozen=True)
class Recipe:
    """How big a model is, how it is trained, and how many sentences make a batch.

    Args:
        sizes: fields of a `ModelConfig`, without those that the vocabulary decides.
        training: optimizer, schedule, steps.
        batch_size: sentences, or windows of text, per step.
    """

    sizes: Mapping[str, Any]
    training: TrainConfig
    batch_size: int

    def model_config(self, tokenizer: Tokenizer) -> ModelConfig:
        """Return the sizes together with the tokenizer's vocabulary and padding."""
        vocabulary = {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id}
        return ModelConfig(**vocabulary, **self.sizes)


SMALL = {"d_model": 128, "n_heads": 8, "n_layers": 2, "d_ff": 512, "max_len": 128}

GRAMMAR = Recipe(
    sizes=SMALL | {"dropout": 0.0, "tie_embeddings": False, "norm_position": "post", "bias": False},
    training=TrainConfig(
        steps=1500,
        learning_rate=2e-3,
        schedule="linear",
        warmup_steps=50,
        weight_decay=0.01,
        label_smoothing=0.1,
        precision="auto",
    ),
    batch_size=32,
)
"""The paper's blocks (post-norm, no biases in attention), trained as one trains today.

AdamW, linear decay to zero, an output projection of its own. No dropout: the corpus is generated,
so no sentence is seen twice and nothing can be over-fitted.
"""

PAPER = Recipe(
    sizes=SMALL | {"norm_position": "post"},
    training=TrainConfig(
        steps=1500,
        schedule="noam",
        warmup_steps=400,
        optimizer="adam",
        clip=None,
        label_smoothing=0.1,
    ),
    batch_size=64,
)
"""The same sizes as the paper trained them: post-norm, tied, Adam, equation 3, float32."""

MENUS = replace(
    GRAMMAR,
    sizes=SMALL | {"dropout": 0.3},
    training=replace(GRAMMAR.training, steps=600, learning_rate=2e-3),
    batch_size=32,
)
"""About a thousand menu entries: so few that strong dropout is needed."""

OWN_PAIRS = Recipe(
    sizes={"d_model": 256, "n_heads": 8, "n_layers": 3, "d_ff": 1024, "max_len": 128},
    training=replace(GRAMMAR.training, steps=3000, learning_rate=1e-3, warmup_steps=200),
    batch_size=64,
)
"""A translator for pairs of your own, tens of thousands of them."""

MANUAL = Recipe(
    sizes={
        "d_model": 64,
        "n_heads": 4,
        "n_layers": 2,
        "d_ff": 256,
        "max_len": 128,
        "dropout": 0.0,
        "activation": "gelu",
        "positions": "rotary",
        "tie_embeddings": False,
    },
    training=TrainConfig(
        steps=1000,
        learning_rate=1e-2,
        schedule="cosine",
        warmup_steps=50,
        weight_decay=0.1,
    ),
    batch_size=8,
)
"""A GPT so small that half a minute on one core is enough; windows of max_len tokens."""
