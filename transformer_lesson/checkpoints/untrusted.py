"""Untrusted files: sizes are checked before memory is allocated, and nothing is run."""

import json
import operator
import pickle
import re
import reprlib
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from transformer_lesson.model.config import ModelConfig

LARGEST_TABLE = 2**28  # numbers; sines and cosines are computed, so no file limits them
FEWEST_PER_LAYER = 4  # tensors; every layer has more
MALFORMED = (
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ZeroDivisionError,
)
"""What Python and PyTorch raise for values of the wrong kind or size."""


CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "pytorch_model.pt")
"""The files that hold weights, the best first. Each may come in parts, with an index."""


INDEX = ".index.json"
LARGEST_TEXT = 100_000_000  # bytes; the largest tokenizers take a third of that
PLAIN_NAME = re.compile(r"[\w-][\w.-]{0,199}")
UNREADABLE = (*MALFORMED, AssertionError, struct.error, zipfile.BadZipFile)
"""What PyTorch's reader of pickles raises for a damaged one, besides its own error."""


@contextmanager
def readable_errors(what: str) -> Iterator[None]:
    """Turn whatever a wrong kind of value raises inside the block into one `ValueError`.

    Args:
        what: where the value is, such as "config.json".
    """
    try:
        yield
    except MALFORMED as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) <= 200 else f"{reason[:199]}…"
        raise ValueError(
            f"{what} holds a value of the wrong kind or size ({reason}): get the file again."
        ) from error


def require_room(configs: tuple[ModelConfig, ...], tensors: Mapping[str, Tensor]) -> None:
    """Refuse sizes that these tensors cannot have, so that a model is no larger than its file.

    Raises:
        ValueError: a size is too large.
    """
    numbers = sum(map(_stored_numbers, tensors.values()))
    for c in configs:
        blocks = c.n_layers * c.d_model
        width = "head_size" if c.head_size else "d_model"
        sizes = {width: blocks * c.n_heads * c.d_head, "d_ff": blocks * c.d_ff}
        sizes["vocab_size"] = c.vocab_size * c.d_model
        if c.positions == "learned":
            sizes["max_len"] = c.max_len * c.d_model
        for name, size in sizes.items():
            if size > numbers:
                raise ValueError(_too_large(name, getattr(c, name), f"{numbers:,} numbers"))
        if c.n_layers > len(tensors) // FEWEST_PER_LAYER:
            raise ValueError(_too_large("n_layers", c.n_layers, f"{len(tensors):,} tensors"))
        if c.positions == "sinusoidal" and c.max_len * c.d_model > LARGEST_TABLE:
            raise ValueError(_too_large("max_len", c.max_len, f"{LARGEST_TABLE:,} sines"))


def require_rows(name: str, n: Any, tensors: Mapping[str, Tensor]) -> None:
    """Refuse more rows of a matrix than any of these tensors has.

    Raises:
        ValueError: no tensor has that many, or n is not a number.
    """
    most = max((tensor.size(0) for tensor in tensors.values() if tensor.dim()), default=0)
    if type(n) is not int or not 0 <= n <= most:
        raise ValueError(_too_large(name, n, f"{most:,} rows"))


def _too_large(name: str, value: Any, room: str) -> str:
    return f"{name} is {value!r}, but there are only {room}: get the file again."


def _stored_numbers(tensor: Tensor) -> int:
    """Return how many numbers are in memory: a shape may repeat one of them endlessly."""
    return min(tensor.numel(), tensor.untyped_storage().nbytes() // tensor.element_size())


class Stored(NamedTuple):
    """What was read: config.json, the tensors by name, and where they come from."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    where: str


def read_model(model) -> Stored:
    """Take config and copies of the tensors from a live model of the library."""
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return Stored(model.config.to_dict(), tensors, type(model).__name__)


def read_directory(path: Path) -> Stored:
    """Read config.json and the weights of a directory, or of the directory of a file of weights.

    Raises:
        ValueError: a file is missing, damaged or not safe to read.
    """
    directory = path if path.is_dir() else path.parent
    facts = read_json(directory / CONFIG)
    files = _weight_files(path)
    check_tokenizer(directory, facts)
    tensors = {}
    for file in files:
        read = load_safetensors if file.suffix == ".safetensors" else load_pickle
        tensors |= read(file)
    return Stored(facts, tensors, str(path))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: there is no such file, or something else in it.
    """
    if not path.is_file():
        raise ValueError(f"{path.parent} has no {path.name}, so it is not a model's checkpoint.")
    _refuse_giants(path)
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON, or only part of it: {error}.") from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} holds a {type(facts).__name__}, but it must be a JSON object.")
    return facts


def _refuse_giants(path: Path) -> None:
    if path.stat().st_size > LARGEST_TEXT:
        raise ValueError(f"{path} is larger than {LARGEST_TEXT:,} bytes: get the right file.")


def _weight_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for name in WEIGHTS:
        if (path / name).is_file():
            return [path / name]
        index = path / f"{name}{INDEX}"
        if index.is_file():
            files = [path / part for part in parts_of(index)]
            lost = [file.name for file in files if not file.is_file()]
            if lost or not files:
                missing = ", ".join(lost) or "no files"
                raise ValueError(f"{index} names {missing}: the checkpoint is incomplete.")
            return files
    raise ValueError(f"{path} has no weights: put one of {', '.join(WEIGHTS)} beside {CONFIG}.")


def parts_of(index: Path) -> list[str]:
    """Return the names of the files that an index lists.

    Raises:
        ValueError: no list, or a name that leads outside the index's own folder.
    """
    listed = read_json(index).get("weight_map", {})
    names = list(listed.values()) if isinstance(listed, dict) else [None]
    for name in names:
        if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name):
            raise ValueError(
                f"{index} names {reprlib.repr(name)}, but its parts must be files in its own "
                "folder: get it again."
            )
    return sorted(set(names))


def load_safetensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file: numbers only, nothing that could run.

    Raises:
        ValueError: the file is cut off, or something else.
    """
    try:
        mapped = load_file(path)  # mapped tensors change with their file
        return {name: tensor.clone() for name, tensor in mapped.items()}
    except (SafetensorError, OSError, *MALFORMED) as error:
        raise ValueError(
            f"{path} is not a safetensors file, or only part of one ({error}): get it again."
        ) from error


def load_pickle(path: Path) -> dict[str, Tensor]:
    """Read a pickle file with `weights_only=True`, which runs nothing in it.

    Raises:
        ValueError: the file holds anything but tensors by name, or is cut off.
    """
    try:
        _refuse_bombs(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, OSError, ValueError, *UNREADABLE) as error:
        reason = (str(error).strip() or "it is empty").splitlines()[0]
        raise ValueError(
            f"{path} is refused: it is damaged, or a pickle with more in it than tensors, which "
            f"could run a program ({reason})."
        ) from error
    named = isinstance(tensors, dict) and all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in tensors.items()
    )
    if not named:
        raise ValueError(f"{path} does not hold tensors by name: save model.state_dict() instead.")
    return tensors


def _refuse_bombs(path: Path) -> None:
    """Raise `ValueError` for an archive that would take more room than its file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > path.stat().st_size:
            raise ValueError(f"unpacked it would take {unpacked:,} bytes")


def check_tokenizer(directory: Path, facts: dict[str, Any]) -> None:
    """Refuse a directory whose tokenizer has ids that the model has no vector for.

    Raises:
        ValueError: the tokenizer's largest id is outside the model's vocabulary.
    """
    size = facts.get("vocab_size")
    for name, read in {"tokenizer.json": _ids, "vocab.json": _values, "vocab.txt": _lines}.items():
        path = directory / name
        if isinstance(size, int) and path.is_file():
            with readable_errors(str(path)):
                largest = max(map(operator.index, read(path)), default=-1)
            if largest >= size:
                raise ValueError(
                    f"{path} does not match the model: its largest id is {largest}, but the "
                    f"model's vocab_size is {size}: take the tokenizer that belongs to it."
                )


def _ids(path: Path) -> list[int]:
    facts = read_json(path)
    words = facts.get("model", {}).get("vocab", {})
    ids = list(words.values()) if isinstance(words, dict) else list(range(len(words)))
    return ids + [token["id"] for token in facts.get("added_tokens", [])]


def _values(path: Path) -> list[int]:
    return list(read_json(path).values())


def _lines(path: Path) -> range:
    _refuse_giants(path)
    with path.open("rb") as file:
        return range(sum(1 for _ in file))
