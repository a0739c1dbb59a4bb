"""The trained translator that comes with the package.

Apart, so that explorables that share it load it, and send it to a page, once.
"""

from functools import cache
from pathlib import Path

import traitlets
from ipywidgets import widget_serialization
from torch import nn

from transformer_lesson.checkpoints import Checkpoint, load_checkpoint
from transformer_lesson.checkpoints.ours import as_bytes
from transformer_lesson.explorables.in_page import Weights
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import Tokenizer

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


def own_weights(model: nn.Module | None, tokenizer: Tokenizer | None) -> Weights | None:
    """Return a learner's model as a page gets it; `None` where the package's is to be taken.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """
    if (model is None) != (tokenizer is None):
        raise ValueError("a model and its tokenizer belong together: pass both or none.")
    return None if model is None else Weights(as_bytes(model, tokenizer))


def bare_weights(model: nn.Module) -> Weights:
    """Return a model that predicts next tokens, without a tokenizer, as a page gets it.

    Raises:
        ValueError: one in training mode, too large for a page, or that a page cannot repeat.
    """
    if not hasattr(model, "decoder"):
        raise ValueError(f"a {type(model).__name__} predicts no next token: pass a decoder.")
    if model.training:
        raise ValueError("the model is in training mode: call its .eval() first.")
    if any(getattr(part, "positions_in_stream", False) for part in model.modules()):
        raise ValueError(
            "the model has positions_in_stream, which no page can repeat: build it without."
        )
    return Weights(as_bytes(model))


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
