"""The reference implementation that the lessons build, check against and import.

Each module is one idea and reads top to bottom: `config`, `masks`, `cache`, `dropout`, `linear`,
`norms`, `grouped_heads`, `attention`, `positions`, `tokenizer`, `embeddings`, `feed_forwards`,
`blocks`, `models`, `recording`, `causality`, `parameter_count`, `corpora`, `training`,
`checkpoints`, `generation`, `induction`, `head_scores`, `interventions`, `variants`, `plots`,
`attention_view`, `explorables`, `exercises`, `grading`, `environment`.

The names below are imported when they are first used, so that `environment` can say what is wrong
where PyTorch is missing or broken.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors, which do not run `__getattr__`
    from transformer_lesson.attention import MultiHeadAttention, scaled_dot_product_attention
    from transformer_lesson.config import ModelConfig
    from transformer_lesson.masks import causal_mask, padding_mask
    from transformer_lesson.models import (
        DecoderOnlyTransformer,
        EncoderDecoderTransformer,
        EncoderOnlyTransformer,
    )
    from transformer_lesson.positions import sinusoidal_encoding
    from transformer_lesson.recording import record

__all__ = [
    "DecoderOnlyTransformer",
    "EncoderDecoderTransformer",
    "EncoderOnlyTransformer",
    "ModelConfig",
    "MultiHeadAttention",
    "causal_mask",
    "padding_mask",
    "record",
    "scaled_dot_product_attention",
    "sinusoidal_encoding",
]

_HOMES = {
    "DecoderOnlyTransformer": "models",
    "EncoderDecoderTransformer": "models",
    "EncoderOnlyTransformer": "models",
    "ModelConfig": "config",
    "MultiHeadAttention": "attention",
    "causal_mask": "masks",
    "padding_mask": "masks",
    "record": "recording",
    "scaled_dot_product_attention": "attention",
    "sinusoidal_encoding": "positions",
}


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
