"""The sizes of a small Llama."""

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.llama import LLAMAS

CHOICES = dict(n_kv_heads=2, rotary_base=500.0, dropout=0.0, tie_embeddings=False)

CONFIG = ModelConfig(13, 12, 6, 2, 17, 11, **CHOICES, **LLAMAS)
