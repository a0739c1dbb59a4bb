"""A checkpoint of other people: its config.json and its tensors, from a directory or a model."""

import json
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "pytorch_model.pt")
"""The files that hold weights, the best first. Each may come in parts, with an index."""

INDEX = ".index.json"


class Stored(NamedTuple):
    """What was read: config.json, the tensors by name, and where it all comes from."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    where: str


def read_model(model) -> Stored:
    """Take config and tensors from a live model of the library."""
    return Stored(model.config.to_dict(), dict(model.state_dict()), type(model).__name__)


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
        raise ValueError(f"{path.parent} has no {path.name}: it is no checkpoint of a model.")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON, or only a part of it: {error}.") from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} holds a {type(facts).__name__}, but it must be a JSON object.")
    return facts


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
                raise ValueError(f"{index} names {', '.join(lost) or 'no files'}: not all is here.")
            return files
    raise ValueError(f"{path} has no weights: put one of {', '.join(WEIGHTS)} beside {CONFIG}.")


def parts_of(index: Path) -> list[str]:
    """Return the names of the files that an index lists."""
    return sorted(set(read_json(index).get("weight_map", {}).values()))


def load_safetensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file: numbers only, nothing that could run.

    Raises:
        ValueError: the file is cut off, or something else.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is no safetensors file, or only a part of one ({error}): get it again."
        ) from error


def load_pickle(path: Path) -> dict[str, Tensor]:
    """Read a pickle file with `weights_only=True`, which runs nothing that it may hold.

    Raises:
        ValueError: the file holds anything but tensors by name, or is cut off.
    """
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
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


def check_tokenizer(directory: Path, facts: dict[str, Any]) -> None:
    """Refuse a directory whose tokenizer has ids that the model has no vector for.

    Raises:
        ValueError: the tokenizer's largest id is outside the model's vocabulary.
    """
    size = facts.get("vocab_size")
    for name, read in {"tokenizer.json": _ids, "vocab.json": _values, "vocab.txt": _lines}.items():
        path = directory / name
        if isinstance(size, int) and path.is_file():
            largest = max(read(path), default=-1)
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
    text = path.read_text(encoding="utf-8").removesuffix("\n")
    return range(len(text.split("\n")))  # splitlines would cut at more than that
