"""The way back: a directory that the library transformers loads."""

import json
from dataclasses import fields
from pathlib import Path

from safetensors.torch import save
from torch import nn

from transformer_lesson.checkpoints.bert import BERT
from transformer_lesson.checkpoints.family import Family
from transformer_lesson.checkpoints.gpt2 import GPT2
from transformer_lesson.checkpoints.llama import LLAMA
from transformer_lesson.checkpoints.marian import MARIAN
from transformer_lesson.checkpoints.own import KINDS, write_whole
from transformer_lesson.checkpoints.reading import CONFIG
from transformer_lesson.config import ModelConfig
from transformer_lesson.models import EncoderDecoderTransformer, EncoderOnlyTransformer


def to_transformers(model: nn.Module, directory: str | Path) -> Path:
    """Write a model as the library's GPT-2, Llama, BERT or Marian: config.json, model.safetensors.

    Args:
        model: one of ours whose config one of the families can represent.
        directory: is made if it does not exist.

    Returns:
        The directory, for `AutoModel.from_pretrained`.

    Raises:
        ValueError: a model or a config that the family cannot represent; the message names the
            field.
    """
    family = nearest_family(model)
    facts = family.write_config(model)
    _check_round_trip(family, model, facts)
    head = not isinstance(model, EncoderOnlyTransformer) or model.projection is not None
    architecture = family.architecture if head else "BertModel"
    facts |= {"architectures": [architecture], "model_type": family.model_type, "dtype": "float32"}
    tensors = {name: w.float().cpu().contiguous() for name, w in family.packed(model).items()}
    if not head:
        tensors = {name.removeprefix(family.prefix): w for name, w in tensors.items()}
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    tensors |= {
        twin: tensors[name].clone()
        for name, twins in family.aliases(model).items()
        for twin in twins
    }
    write_whole(directory / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write_whole(directory / CONFIG, json.dumps(facts, indent=2).encode())
    return directory


def nearest_family(model: nn.Module) -> Family:
    """Return the family that a model of ours is closest to.

    Raises:
        ValueError: it is none of the three models.
    """
    if KINDS.get(type(model).__name__) is not type(model):
        raise ValueError(f"a {type(model).__name__} is none of {', '.join(KINDS)}.")
    if isinstance(model, EncoderOnlyTransformer):
        return BERT
    if isinstance(model, EncoderDecoderTransformer):
        return MARIAN
    return LLAMA if "rms" in model.config.norm or model.config.positions == "rotary" else GPT2


def _check_round_trip(family: Family, model: nn.Module, facts: dict) -> None:
    """Refuse a config that would come back as another one."""
    ours = [model.config]
    if isinstance(model, EncoderDecoderTransformer):
        ours = [model.source_config, model.config]
    try:
        theirs = family.read_config(facts)
    except ValueError as error:
        raise ValueError(f"{family.name} cannot represent this model: {error}") from error
    for our, their in zip(ours, theirs, strict=True):
        for field in fields(ModelConfig):
            mine, its = getattr(our, field.name), getattr(their, field.name)
            if _meant(our, field.name) != _meant(their, field.name):
                raise ValueError(
                    f"{field.name} is {mine!r}, but {family.name} can only represent {its!r}: "
                    "this model cannot be written for the library."
                )


def _meant(config: ModelConfig, name: str):
    """A field's value, or what stands for it; `None` where it is not used or already checked."""
    if name == "n_kv_heads":
        return config.n_kv_heads or config.n_heads
    if name == "head_transform" or (name == "rotary_base" and config.positions != "rotary"):
        return None
    return getattr(config, name)
