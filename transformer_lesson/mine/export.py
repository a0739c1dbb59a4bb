"""Export your model: as a folder that `transformers` loads, and as a page that opens offline.

`save_model` stores it in a third form, safetensors, for the lessons that follow.
"""

from pathlib import Path

from torch import nn

from transformer_lesson.checkpoints import is_ours, to_transformers
from transformer_lesson.explorables import ModelFlow
from transformer_lesson.explorables.html import MARK
from transformer_lesson.explorables.in_page import SENTENCE
from transformer_lesson.files import printable
from transformer_lesson.mine.trained import as_the_packages, trained
from transformer_lesson.text.tokenizers import Tokenizer


def export(
    folder: str | Path, model: nn.Module | None = None, tokenizer: Tokenizer | None = None
) -> Path:
    """Write a model as a folder that the library `transformers` loads, and return the folder.

    The paper's translator becomes a `MarianMTModel`, lesson 10's GPT a `GPT2LMHeadModel`; both give
    the same results as here. `AutoTokenizer` reads the tokenizer from the same folder. Writing does
    not need `transformers`.

    Args:
        folder: created if it does not exist; one that this function wrote is overwritten.
        model: with its tokenizer; by default the translator that you trained in lesson 08.
        tokenizer: the one that the model was trained with.

    Raises:
        ValueError: you have trained no translator, the folder has other contents, a model without
            its tokenizer, or one that no class of the library can represent.
        OSError: the folder cannot be written.
    """
    folder, (model, tokenizer) = Path(folder), _yours(model, tokenizer)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{_shown(folder)} is a file: give a folder instead.")
    others = sorted(path.name for path in folder.glob("[!.]*"))
    if others and not is_ours(folder):
        raise ValueError(
            f"{_shown(folder)} already holds other files, such as {printable(others[0])}, which "
            "are left alone: give a folder that is empty or doesn't exist yet."
        )
    return to_transformers(model, folder, tokenizer)


def page(
    path: str | Path,
    text: str = SENTENCE,
    model: nn.Module | None = None,
    tokenizer: Tokenizer | None = None,
) -> Path:
    """Write one HTML file with a model's `ModelFlow`, and return its path.

    The weights, the tokenizer and all programs are in the file, so it opens from disk, without
    Python and without a network.

    Args:
        path: ends in .html; a page that this function wrote is overwritten. The page's title is
            this name, or the folder's if it is page.html or index.html.
        text: what the model reads when the page opens; it can be changed in the page.
        model: with its tokenizer; by default the translator that you trained in lesson 08.
        tokenizer: the one that the model was trained with.

    Raises:
        ValueError: you have trained no translator, another file has that name, a model without its
            tokenizer, or one that is too large for a page.
        OSError: the file cannot be written.
    """
    path, (model, tokenizer) = Path(path), _yours(model, tokenizer)
    if path.suffix != ".html":
        raise ValueError(f"{_shown(path)} must end in .html, or browsers won't open it as a page.")
    if path.exists() and not _is_our_page(path):
        raise ValueError(
            f"{_shown(path)} exists and isn't a page of this course: give another file name."
        )
    flow = ModelFlow(model, tokenizer, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    flow.save_html(path, f"{_name(path)}: a model of my own, word by word")
    flow.weights.close(), flow.close()  # not shown in the notebook
    return path


def _yours(model: nn.Module | None, tokenizer: Tokenizer | None) -> tuple[nn.Module, Tokenizer]:
    if (model is None) != (tokenizer is None):
        raise ValueError("A model and its tokenizer belong together: pass both or none.")
    if model is not None:
        return as_the_packages(model), tokenizer
    translator = trained()
    if translator.whose != "yours":
        why = translator.whose.partition("; ")[2] or "no translator of yours is kept yet"
        raise ValueError(f"{why}: train one in lesson 08, or pass a model and its tokenizer.")
    return translator.model, translator.tokenizer


def _is_our_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return MARK in file.read(1000)


def _name(path: Path) -> str:
    path = path.resolve()
    return printable(path.parent.name if path.stem in ("page", "index") else path.stem)


def _shown(path: Path) -> str:
    return printable(str(path))
