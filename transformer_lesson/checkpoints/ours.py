"""A model in one file, with everything that is needed to use it or to train on.

A checkpoint is a safetensors file: numbers and a JSON text, nothing that could run. The JSON
holds sizes, vocabulary and the state of the training; it starts with the SHA-256 of the file,
taken with zeros in that place. So a file that was cut off or changed, by however little, is
refused. (Somebody who means to deceive you can compute a new sum: it proves that a file is whole,
not who wrote it.)
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from transformer_lesson.checkpoints.untrusted import readable_errors, require_room
from transformer_lesson.files import write_atomically
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.text.tokenizers import Tokenizer, tokenizer_from_json

KEY, VERSION, NO_SUM = "transformer_lesson", 1, "0" * 64
KINDS = {
    kind.__name__: kind
    for kind in (EncoderOnlyTransformer, DecoderOnlyTransformer, EncoderDecoderTransformer)
}


class TrainingState(NamedTuple):
    """What a training run needs to go on: `facts` that JSON can hold, and `tensors` by name."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]


class Checkpoint(NamedTuple):
    """What a file holds; the model is in evaluation mode."""

    model: nn.Module
    tokenizer: Tokenizer | None
    training: TrainingState | None


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    tokenizer: Tokenizer | None = None,
    training: TrainingState | None = None,
) -> None:
    """Write a model to a file, and whatever else you pass.

    The file is written under another name in the same folder and then renamed. So at any moment,
    even if the power fails, `path` is either the old file or the whole new one.

    Raises:
        ValueError: the model is none of the package's three, or the folder does not exist.
        OSError: the file cannot be written; an older file of this name stays as it was.
    """
    check_savable(path, model)
    tensors = {f"model.{name}": weight.detach() for name, weight in model.named_parameters()}
    facts = {
        "sha256": NO_SUM,  # first, so that it is the first to be found in the file
        "version": VERSION,
        "model": _describe(model),
        "tokenizer": tokenizer.to_json() if tokenizer else None,
        "training": training.facts if training else None,
    }
    tensors |= training.tensors if training else {}
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    data = save(tensors, metadata={KEY: json.dumps(facts, ensure_ascii=False)})
    write_atomically(path, data.replace(NO_SUM.encode(), _sum(data, NO_SUM).encode(), 1))


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote. Nothing in the file is ever run.

    Raises:
        ValueError: no such file, or one that is cut off, changed or of another program.
    """
    path = Path(path)
    facts, data = _read(path)
    try:
        with readable_errors("its description"):  # whoever means harm can compute a sum that fits
            return _restore(facts, load(data))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _restore(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Checkpoint:
    kind, arguments = facts["model"]["kind"], _arguments(facts["model"]["arguments"])
    configs = tuple(value for value in arguments.values() if isinstance(value, ModelConfig))
    stored = {name: tensors.pop(name) for name in list(tensors) if name.startswith("model.")}
    require_room(configs, stored)
    if (arguments.get("n_classes") or 0) > max(map(Tensor.numel, stored.values())):
        raise ValueError(f"it has no weights for {arguments['n_classes']} classes.")
    with torch.random.fork_rng(devices=[]):  # reading a file changes no random numbers
        model = KINDS[kind](**arguments)
    weights = {f"model.{name}": weight for name, weight in model.named_parameters()}
    if _shapes(stored) != _shapes(weights):
        raise ValueError(f"its weights are not those of a {kind}.")
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(stored[name])
    tokenizer = tokenizer_from_json(facts["tokenizer"]) if facts["tokenizer"] else None
    training = TrainingState(facts["training"], tensors) if facts["training"] else None
    return Checkpoint(model.eval(), tokenizer, training)


def check_savable(path: str | Path, model: nn.Module) -> None:
    """Raise `save_checkpoint`'s `ValueError`s: before hours of training, not after them."""
    path, kind = Path(path), type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise ValueError(f"a {kind} cannot be saved: only {', '.join(KINDS)} can.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: the folder {path.parent} does not exist; create it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: add the name of a file in it.")


def _sum(data: bytes, recorded: str) -> str:
    """The SHA-256 of a file, taken with zeros where it is recorded itself."""
    return hashlib.sha256(data.replace(recorded.encode(), NO_SUM.encode(), 1)).hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return a checkpoint's facts and all its bytes, or say what is wrong with the file."""
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:  # reads no more than the header
            foreign = KEY not in (file.metadata() or {})
    except (SafetensorError, OSError, MemoryError) as error:
        raise ValueError(f"{path} is no checkpoint, or only a part of one: {error}.") from error
    if foreign:
        raise ValueError(f"{path} holds tensors of another program, not a model of this course.")
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    text = header["__metadata__"][KEY]
    recorded = text[len('{"sha256": "') :][: len(NO_SUM)]
    if _sum(data, recorded) != recorded:
        raise ValueError(f"{path} is damaged or was changed: its SHA-256 is not the recorded one.")
    with readable_errors(f"{path}"):
        facts = json.loads(text)
        version = facts["version"]
    if version != VERSION:
        raise ValueError(
            f"{path} has version {str(version)[:20]} of the format, this package reads {VERSION}: "
            "use the package that wrote it."
        )
    return facts, data


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _describe(model: nn.Module) -> dict[str, Any]:
    """Return what `_restore` needs to make a model of the same form."""
    arguments: dict[str, Any] = {"config": asdict(model.config)}
    if isinstance(model, EncoderOnlyTransformer):
        arguments["n_classes"] = model.classifier.out_features if model.classifier else None
        arguments["token_head"] = model.projection is not None
    if isinstance(model, EncoderDecoderTransformer):
        shared = model.source_embedding.weight is model.target_embedding.weight
        one = shared and model.source_config == model.config
        arguments["source_config"] = asdict(model.source_config)
        arguments["target_config"] = None if one else arguments["config"]
        arguments["share_embeddings"] = shared and not one
        del arguments["config"]
    return {"kind": type(model).__name__, "arguments": arguments}


def _arguments(described: dict[str, Any]) -> dict[str, Any]:
    """Turn what `_describe` wrote back into the arguments of a model."""
    return {
        name: ModelConfig(**value) if name.endswith("config") and value else value
        for name, value in described.items()
    }
