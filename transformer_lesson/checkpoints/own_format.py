"""A model in one file, with everything needed to use it or to continue its training.

A checkpoint is a safetensors file: numbers and a JSON text, nothing that could run. The JSON holds
sizes, vocabulary, the state of the training, and a checksum of all that and of the tensors. So a
file that was changed, however little, is refused, as safetensors refuses one that was cut off. (An
attacker can compute a new sum: it proves that a file is whole, not who wrote it.)
"""

import hashlib
import json
import os
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from transformer_lesson.checkpoints.albert import AlbertTransformer, stored_parts
from transformer_lesson.checkpoints.bert import BertTransformer
from transformer_lesson.checkpoints.gguf import is_gguf
from transformer_lesson.checkpoints.marian import MarianTransformer
from transformer_lesson.checkpoints.untrusted import readable_errors, require_room, require_rows
from transformer_lesson.checkpoints.zero_copy import parameters_on_meta, take_over
from transformer_lesson.files import write_atomically
from transformer_lesson.model.config import LATER, ModelConfig
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.text.tokenizers import Tokenizer, tokenizer_from_json

KEY, VERSION = "transformer_lesson", 2
KINDS = {
    kind.__name__: kind
    for kind in (
        EncoderOnlyTransformer,
        DecoderOnlyTransformer,
        EncoderDecoderTransformer,
        BertTransformer,
        AlbertTransformer,
        MarianTransformer,
    )
}
RENAMED = {
    "micro_batches": "gradient_accumulation_steps",
    "recompute": "activation_checkpointing",
    "rates": "learning_rates",
}
"""Names in the first edition's record of a training, to today's."""
DROPPED = ("embedding_norm", "n_token_types", "output_bias", "head_transform")
"""Fields of its configs that are off in all models but BERT and Marian."""


class TrainingState(NamedTuple):
    """What a run needs to continue: `facts` that JSON can hold, and `tensors` by name."""

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
        ValueError: the model is not one of the package's, or the folder does not exist; the model
            is in 8 or 4 bits, or was changed, so that its config does not describe its weights; or
            the tokenizer is kept in its own file.
        OSError: the file cannot be written; an older file of this name stays as it was.
    """
    _check_place(path, model)
    write_atomically(path, as_bytes(model, tokenizer, training))


def as_bytes(
    model: nn.Module,
    tokenizer: Tokenizer | None = None,
    training: TrainingState | None = None,
) -> bytes:
    """Return what `save_checkpoint` writes: a page gets a model as bytes, without a file.

    Raises:
        ValueError: weights or a tokenizer that `save_checkpoint` refuses.
    """
    if type(model) in KINDS.values():  # a page can show others, too
        check_weights(model)
    tensors = {f"model.{name}": weight.detach() for name, weight in model.named_parameters()}
    facts = {
        "version": VERSION,
        "model": _describe(model),
        "tokenizer": _kept(tokenizer),
        "training": training.facts if training else None,
    }
    tensors |= training.tensors if training else {}
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    facts["checksum"] = _checksum(facts, tensors)
    metadata = {KEY: json.dumps(facts, ensure_ascii=False)}
    return save(tensors, metadata=metadata)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote. Nothing in the file is ever run.

    The model computes in the precision in which it was saved. (If its weights had several, all get
    the one that can hold them all.)

    Raises:
        ValueError: no such file, or one that is cut off, changed or of another program.
    """
    path = Path(path)
    facts, tensors = _read(path)
    try:
        with readable_errors("its description"):  # an attacker can compute a sum that fits
            return _restore(facts, tensors)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _restore(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Checkpoint:
    kind, arguments = facts["model"]["kind"], _arguments(facts["model"]["arguments"])
    configs = tuple(value for value in arguments.values() if isinstance(value, ModelConfig))
    stored = {name: tensors.pop(name) for name in list(tensors) if name.startswith("model.")}
    if d_embedding := arguments.get("d_embedding"):
        configs = stored_parts(*configs, d_embedding)
    require_room(configs, stored)
    for name in ("n_classes", "n_token_types", "d_embedding"):
        require_rows(name, arguments.get(name) or 0, stored)
    with parameters_on_meta():
        model = KINDS[kind](**arguments)
    weights = dict(model.named_parameters())
    if _shapes(stored) != _shapes({f"model.{name}": weight for name, weight in weights.items()}):
        raise ValueError(f"its weights are not those of a {kind}.")
    # the table of sines gets the precision of the weights, in which the model computed
    dtype = reduce(torch.promote_types, {weight.dtype for weight in stored.values()})
    # copies, because stored tensors change with their file
    copies = {name: stored[f"model.{name}"].clone() for name in weights}
    take_over(model.to(dtype), copies, dtype)
    tokenizer = tokenizer_from_json(facts["tokenizer"]) if facts["tokenizer"] else None
    training = TrainingState(facts["training"], tensors) if facts["training"] else None
    return Checkpoint(model.eval(), tokenizer, training)


def check_savable(path: str | Path, model: nn.Module, tokenizer: Tokenizer | None = None) -> None:
    """Raise `save_checkpoint`'s `ValueError`s before hours of training, not after them."""
    _check_place(path, model)
    check_weights(model)
    _kept(tokenizer)


def _check_place(path: str | Path, model: nn.Module) -> None:
    path, kind = Path(path), type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise ValueError(f"a {kind} cannot be saved: only {', '.join(KINDS)} can.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: the folder {path.parent} does not exist; create it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: add the name of a file in it.")


def _kept(tokenizer: Tokenizer | None) -> str | None:
    """Return what a file keeps of a tokenizer, or raise a `ValueError` if none can."""
    text = tokenizer.to_json() if tokenizer else None
    if text:
        tokenizer_from_json(text)
    return text


def check_weights(model: nn.Module) -> None:
    """Refuse one of our models whose config does not describe its weights: some would be lost.

    Raises:
        ValueError: a matrix in 8 or 4 bits, or parts that were added, removed or exchanged.
    """
    fixed = dict(model.named_buffers())
    for name in (name for name in model.state_dict() if name in fixed):
        layer, _, _ = name.rpartition(".")
        raise ValueError(
            f"{layer} is a matrix in few bits, chosen for this processor, which cannot be saved: "
            "save the model as it was before in_eight_bits, or keep the GGUF file of packed_llama."
        )
    with parameters_on_meta():
        described = type(model)(**_arguments(_describe(model)["arguments"]))
    expected, actual = (_shapes(dict(part.named_parameters())) for part in (described, model))
    odd = [name for name in {**expected, **actual} if expected.get(name) != actual.get(name)]
    if odd:
        raise ValueError(
            f"{odd[0]} is not what the model's config describes, so it could not be loaded again: "
            "save the model as it was before its parts were changed, or its state_dict()."
        )


def _checksum(facts: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """The SHA-256 of a checkpoint's facts and of the name, kind, shape and bytes of each tensor."""
    total = hashlib.sha256(json.dumps(facts).encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return total.hexdigest()


def _parts(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return a checkpoint's metadata and tensors, both of the same file.

    safetensors opens a file twice, and in between it may have been replaced.
    """
    while True:
        before = path.stat()
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if KEY not in metadata:
                raise ValueError(
                    f"{path} holds another program's tensors, not a model of this course."
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if os.path.samestat(before, path.stat()):
            return metadata, tensors


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return a checkpoint's facts and tensors, or say what is wrong with the file."""
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    if is_gguf(path):
        raise ValueError(f"{path} is a GGUF file: `from_pretrained` reads these.")
    try:
        metadata, tensors = _parts(path)
    except (SafetensorError, OSError, MemoryError) as error:
        raise ValueError(f"{path} is no checkpoint, or only a part of one: {error}.") from error
    try:
        with readable_errors("its description"):
            facts = json.loads(metadata[KEY])
            version, recorded = facts["version"], facts.pop("checksum", None)
            if version == 1 and recorded is None:
                return _from_version_1(facts, tensors)
            intact = recorded == _checksum(facts, tensors)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if version != VERSION:
        raise ValueError(
            f"{path} has version {str(version)[:20]} of the format, this package reads {VERSION}: "
            "use the package that wrote it."
        )
    if not intact:
        raise ValueError(f"{path} is damaged or was changed: its checksum is not the recorded one.")
    return facts, tensors


def _from_version_1(facts: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict, dict]:
    """Give what the first edition wrote its current names."""
    for config in facts["model"]["arguments"].values():
        if isinstance(config, dict) and any([config.pop(name, None) for name in DROPPED]):
            raise ValueError(
                "it holds a BERT or a Marian as the first edition wrote it: read the original "
                "again with from_pretrained, and save that."
            )
    training = json.dumps(facts["training"])
    for old, new in RENAMED.items():
        training = training.replace(f'"{old}":', f'"{new}":')
    facts["training"] = json.loads(training)
    names = {name: name.replace("embedding.table", "embedding.weight") for name in tensors}
    return facts, {names[name]: tensor for name, tensor in tensors.items()}


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _fields(config: ModelConfig) -> dict[str, Any]:
    """Return a config's fields, but of `LATER` only those that are switched on."""
    switched_off = LATER.items()
    return {
        name: value for name, value in asdict(config).items() if (name, value) not in switched_off
    }


def _describe(model: nn.Module) -> dict[str, Any]:
    """Return what `_restore` needs to build a model of the same form."""
    arguments: dict[str, Any] = {"config": _fields(model.config)}
    if isinstance(model, EncoderOnlyTransformer):
        arguments["token_head"] = model.projection is not None
    if isinstance(model, AlbertTransformer):
        arguments["d_embedding"] = model.embedding.config.d_model
    if isinstance(model, BertTransformer):
        arguments["n_token_types"] = model.embedding.token_types.num_embeddings
    elif isinstance(model, EncoderOnlyTransformer):
        arguments["n_classes"] = model.classifier.out_features if model.classifier else None
    if isinstance(model, EncoderDecoderTransformer):
        shared = model.source_embedding.weight is model.target_embedding.weight
        one_config = shared and model.source_config == model.config
        arguments["source_config"] = _fields(model.source_config)
        arguments["target_config"] = None if one_config else arguments["config"]
        arguments["share_embeddings"] = shared and not one_config
        del arguments["config"]
    return {"kind": type(model).__name__, "arguments": arguments}


def _arguments(described: dict[str, Any]) -> dict[str, Any]:
    """Turn what `_describe` wrote back into the arguments of a model."""
    return {
        name: ModelConfig(**value) if name.endswith("config") and value else value
        for name, value in described.items()
    }
