"""A small translator of a learner."""

from tests.parity import randomized
from transformer_lesson import mine
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import WordTokenizer

PAIRS = grammar.generate(48, seed=11)

SOURCES, TARGETS = [pair.source for pair in PAIRS], [pair.target for pair in PAIRS]


def small_translator():
    """A `MyTransformer` with random weights, its norms and biases too, and its tokenizer."""
    tokenizer = WordTokenizer.train(SOURCES + TARGETS)
    sizes = dict(d_model=24, n_heads=3, n_layers=2, d_ff=34, max_len=29, dropout=0.0)
    kind = dict(pad_id=0, norm_position="post", bias=False, tie_embeddings=False)
    config = ModelConfig(tokenizer.vocab_size, **sizes, **kind)
    return randomized(mine.MyTransformer(config)).eval(), tokenizer
