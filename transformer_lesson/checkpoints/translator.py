"""The trained translator that comes with the package.

Short, because it is one file; separate from `own_format`, which reads any.
"""

from pathlib import Path

from transformer_lesson.caching import copied
from transformer_lesson.checkpoints.own_format import Checkpoint, load_checkpoint

TRANSLATOR = Path(__file__).parent.parent / "data" / "translator.safetensors"
MISSING = (
    "The trained translator is missing. In a terminal, `python -m transformer_lesson.training "
    "--corpus grammar --out run` makes run/model.safetensors; copy it to "
    "transformer_lesson/data/translator.safetensors and restart the kernel."
)


@copied
def trained_translator() -> Checkpoint | None:
    """Return the translator that comes with the package; `None` if it is missing.

    Raises:
        ValueError: the file is damaged.
    """
    return load_checkpoint(TRANSLATOR) if TRANSLATOR.exists() else None
