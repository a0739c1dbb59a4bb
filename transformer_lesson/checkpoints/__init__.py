"""Models in files: our own format, and other people's checkpoints in the library's format.

`save_checkpoint` and `load_checkpoint` keep everything in one file of ours. `from_pretrained`
fills our models with the weights of GPT-2, BERT, ALBERT, Marian, Llama, T5 or their relatives,
`to_transformers` is the way back, also for models trained here, and `compare_layers` shows where
two models diverge. With `library_recorder`, `record` takes the library's models, too. `gguf`,
`gguf_tokenizer`, `llama_cpp` and `llama_cpp_t5` read llama.cpp's files; `models_here` lists those
that Ollama has on this machine, and `gguf_of` finds one by name. `weights` fetches real models that
come as Python packages.
"""

from transformer_lesson.checkpoints.layer_by_layer import Comparison, compare_layers
from transformer_lesson.checkpoints.library_recording import library_recorder
from transformer_lesson.checkpoints.ollama import gguf_of, models_here
from transformer_lesson.checkpoints.own_format import (
    KEY,
    KINDS,
    Checkpoint,
    TrainingState,
    check_savable,
    load_checkpoint,
    save_checkpoint,
)
from transformer_lesson.checkpoints.transformers_io import (
    FAMILIES,
    from_pretrained,
    is_ours,
    to_transformers,
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
    "gguf_of",
    "is_ours",
    "library_recorder",
    "load_checkpoint",
    "models_here",
    "save_checkpoint",
    "to_transformers",
    "write_atomically",
]
