"""The reference implementation that the lessons build, check against and import.

Each module is one idea and reads top to bottom: `config`, `masks`, `cache`, `dropout`, `linear`,
`norms`, `grouped_heads`, `attention`, `positions`, `tokenizer`, `embeddings`, `feed_forwards`,
`blocks`, `models`, `recording`, `causality`, `parameter_count`, `corpora`, `training`,
`checkpoints`, `generation`, `induction`, `head_scores`, `interventions`, `variants`, `plots`,
`attention_view`, `explorables`, `exercises`.
"""

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
