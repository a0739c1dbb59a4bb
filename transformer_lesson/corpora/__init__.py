"""Text to learn from, and how sentences of different lengths become one batch of ids.

`manual` is CPython's own manual, `interface_strings` JupyterLab's menus in English and German.
Both are already on the machine: nothing is downloaded.
"""

from transformer_lesson.corpora.batching import count_padding, pad_batch

__all__ = ["count_padding", "pad_batch"]
