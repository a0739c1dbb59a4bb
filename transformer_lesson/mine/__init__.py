"""Your Transformer: the paper's forward pass, run on the functions that you wrote and passed.

`parts()` says which functions are yours; `MyTransformer` runs them, with ours for what is missing.
"""

from transformer_lesson.mine.parts import PARTS, Parts, assembled, parts
from transformer_lesson.mine.transformer import MyTransformer

__all__ = ["PARTS", "MyTransformer", "Parts", "assembled", "parts"]
