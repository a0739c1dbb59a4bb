"""The learner's trained model, stored beside their functions, and their functions by name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torch import nn

from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.checkpoints.translator import MISSING, trained_translator
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.collection import FOLDER, collection_folder
from transformer_lesson.files import printable
from transformer_lesson.mine.fallback import with_fallback
from transformer_lesson.mine.parts import usable, warn
from transformer_lesson.mine.transformer import MyTransformer
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer

FILE = "translator.safetensors"


def folder() -> Path:
    """Return the folder of your own work: functions that passed, the model that you trained."""
    return collection_folder() or Path(FOLDER)


def function(name: str) -> Callable:
    """Return the learner's function if it is collected and passes its check; else ours.

    If theirs raises, ours replaces it from then on, and a warning says why.

    Raises:
        ValueError: there is no exercise of that name.
    """
    ours = find(name).load_reference()
    yours, _ = usable([name])
    return with_fallback(name, yours[name], ours, partial(warn, {})) if yours else ours


def is_yours(part: Callable) -> bool:
    """Return whether a function that `function` returned is the learner's."""
    return not part.__module__.startswith("transformer_lesson.")


class Trained(NamedTuple):
    """A trained translator.

    Args:
        model: in evaluation mode.
        tokenizer: the model's.
        whose: "yours" or "the package's", with the reason if yours could not be read.
    """

    model: EncoderDecoderTransformer
    tokenizer: Tokenizer
    whose: str


def save_model(model: EncoderDecoderTransformer, tokenizer: Tokenizer) -> str:
    """Store a trained translator in the learner's folder; return a sentence that says where.

    Args:
        model: a `MyTransformer`, or the package's own.
        tokenizer: the one that it was trained with.
    """
    folder = collection_folder()
    if folder is None:
        return "Your model wasn't saved: there are no notebooks in the working folder."
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_checkpoint(folder / FILE, as_the_packages(model).eval(), tokenizer)
    except OSError as error:
        return f"Your model can't be saved in {printable(str(folder))} ({error.strerror or error})."
    return f"Your model is kept in `{FOLDER}/{FILE}`."


def as_the_packages(model: nn.Module) -> nn.Module:
    """Return a `MyTransformer` as the package's model, sharing its parameters; others unchanged."""
    return model.as_the_packages() if isinstance(model, MyTransformer) else model


def trained() -> Trained:
    """Return the translator that the learner trained; the package's if there is none.

    Raises:
        ValueError: there is neither.
    """
    folder, whose = collection_folder(), "the package's"
    path = folder and folder / FILE
    if path and path.exists():
        try:
            return Trained(*_read(path), "yours")
        except (ValueError, OSError) as error:
            whose = printable(f"the package's; yours could not be read ({error})")
    if (translator := trained_translator()) is None:
        raise ValueError(MISSING)
    return Trained(translator.model, translator.tokenizer, whose)


def _read(path: Path) -> tuple[EncoderDecoderTransformer, Tokenizer]:
    model = load_checkpoint(path)
    if not isinstance(model.model, EncoderDecoderTransformer) or model.tokenizer is None:
        raise ValueError(f"{path.name} holds no translator with its tokenizer")
    return model.model.eval(), model.tokenizer
