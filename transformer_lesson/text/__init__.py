"""Text to learn from, and how sentences of different lengths become one batch of ids.

`manual` is CPython's own manual, `menus` JupyterLab's menus in English and German.
Both are already on the machine: nothing is downloaded. `stories` makes tiny stories whose facts can
be checked. `parallel_text` reads translations from files of your own. `pretrained` has other
people's tokenizers, `chat_templates` the forms in which their models chat.
"""

from transformer_lesson.text.batches import (
    Batch,
    TranslationBatches,
    WindowBatches,
    count_padding,
    pad_batch,
)
from transformer_lesson.text.pairs import Pair, parallel_text

__all__ = [
    "Batch",
    "Pair",
    "TranslationBatches",
    "WindowBatches",
    "count_padding",
    "pad_batch",
    "parallel_text",
]
