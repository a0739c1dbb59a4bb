"""Models in files: our own format, and other people's checkpoints in the library's format.

`save_checkpoint` and `load_checkpoint` keep everything in one file of ours. `from_pretrained`
fills our models with the weights of GPT-2, BERT, Marian or Llama, `to_transformers` is the way
back, and `compare_layers` shows where two models part.
"""

from transformer_lesson.checkpoints.comparing import Comparison, compare_layers
from transformer_lesson.checkpoints.exporting import to_transformers
from transformer_lesson.checkpoints.hub import is_cached
from transformer_lesson.checkpoints.own import (
    KEY,
    KINDS,
    Checkpoint,
    TrainingState,
    check_savable,
    load_checkpoint,
    save_checkpoint,
    write_whole,
)
from transformer_lesson.checkpoints.pretrained import FAMILIES, from_pretrained

__all__ = [
    "FAMILIES",
    "KEY",
    "KINDS",
    "Checkpoint",
    "Comparison",
    "TrainingState",
    "check_savable",
    "compare_layers",
    "from_pretrained",
    "is_cached",
    "load_checkpoint",
    "save_checkpoint",
    "to_transformers",
    "write_whole",
]
