"""The sizes of a small Transformer."""

from transformer_lesson.model.config import ModelConfig

SIZES = dict(vocab_size=13, d_model=8, n_heads=2, n_layers=2, d_ff=17, max_len=11, pad_id=0)

CONFIG = ModelConfig(**SIZES, norm_position="post", bias=False, dropout=0.0)
