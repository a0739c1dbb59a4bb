"""The trained translator that comes with the package.

Apart, so that explorables that share it load it, and send it to a page, once.
"""

from functools import cache
from pathlib import Path

import traitlets
from ipywidgets import widget_serialization

from transformer_lesson.checkpoints import Checkpoint, load_checkpoint
from transformer_lesson.explorables.in_page import Weights
from transformer_lesson.text import grammar

TRANSLATOR = Path(__file__).parent.parent / "data" / "translator.safetensors"
MISSING = (
    "The trained translator is missing. In a terminal, `python -m transformer_lesson.training "
    "--corpus grammar --out run` makes run/model.safetensors; copy it to "
    "transformer_lesson/data/translator.safetensors and restart the kernel."
)


@cache
def trained_translator() -> Checkpoint | None:
    """Return the translator that comes with the package; `None` if it is missing.

    Raises:
        ValueError: the file is damaged.
    """
    return load_checkpoint(TRANSLATOR) if TRANSLATOR.exists() else None


@cache
def english_words() -> frozenset[str]:
    """Return the words of the generated corpus's English side."""
    return frozenset(word for pair in grammar.generate(2000, 0) for word in pair.source.split())


@cache
def _weights() -> Weights | None:
    return Weights(TRANSLATOR.read_bytes()) if TRANSLATOR.exists() else None


class ReadsTranslator(traitlets.HasTraits):
    """What an explorable needs whose front end runs the trained translator in the page."""

    weights = traitlets.Instance(Weights, allow_none=True).tag(
        sync=True, fact=True, **widget_serialization
    )
    source_words = traitlets.List().tag(sync=True, fact=True)
    missing = traitlets.Unicode(MISSING).tag(sync=True, fact=True)

    @traitlets.default("weights")
    def _translator(self) -> Weights | None:
        return _weights()

    @traitlets.default("source_words")
    def _english(self) -> list[str]:
        return sorted(english_words())
