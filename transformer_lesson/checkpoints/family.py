"""What all families of checkpoints share: mapping names, and checking that fields fit."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.model.config import ModelConfig

Facts = Mapping[str, Any]
"""What config.json says."""
Tensors = dict[str, Tensor]

OUR_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "swish": "swish",
    "silu": "swish",
}
"""The library's name of an activation to our name."""
THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swish": "silu"}


class Family(ABC):
    """How one kind of checkpoint becomes one of our models, and back."""

    name: str
    """Its usual name."""
    model_type: str
    """The name in config.json."""
    architecture: str
    """The library's class, which `to_transformers` names."""
    model: type[nn.Module]
    """Our class."""
    prefix: str
    """What precedes the names of the stack when there is a head."""
    rules: tuple[tuple[str, str], ...]
    """Pairs (pattern, replacement) that turn our parameter's name into theirs, in order."""
    first_position = 0
    """What the library calls a text's first position."""
    layers: tuple[tuple[str, str], ...]
    """Pairs (our module, their module) that compute the same, in order; {i} is a layer."""

    @abstractmethod
    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for theirs, or two: the encoder's and the decoder's."""

    @abstractmethod
    def write_config(self, model: nn.Module) -> dict[str, Any]:
        """Return config.json for one of our models."""

    def stored(self, configs: tuple[ModelConfig, ...], facts: Facts) -> tuple[ModelConfig, ...]:
        """Return configs of what a file holds, if that is less than the whole model."""
        return configs

    def build(self, configs: tuple[ModelConfig, ...], facts: Facts, tensors: Tensors) -> nn.Module:
        """Return our model, with its own weights."""
        return self.model(*configs)

    def converted(self, model: nn.Module) -> nn.Module:
        """Return a model that this family can store and that computes the same as ours."""
        return model

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Drop what has no effect, and rename what older versions called something else."""
        return tensors

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return, for one of their names, their other names of the same matrix."""
        return {}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Convert our one matrix per name to their layout."""
        return weights

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        return tensors

    def rename(self, name: str) -> str:
        """Return the library's name of one of our parameters."""
        for pattern, replacement in self.rules:
            name = re.sub(pattern, replacement, name)
        return name

    def packed(self, model: nn.Module) -> Tensors:
        """Return a model's weights under the library's names and in its shapes."""
        weights = {self.rename(name): w.detach() for name, w in model.named_parameters()}
        return self.pack(weights, model.config)


@torch.no_grad()
def filled(model: nn.Module, weights: Tensors) -> nn.Module:
    """Return a model with these weights; a missing bias becomes zeros, which add nothing."""
    for name, parameter in model.named_parameters():
        if name not in weights and name.endswith(".bias"):
            parameter.zero_()
        else:
            parameter.copy_(weights[name])
    return model


def needed(facts: Facts, *names: str) -> list[Any]:
    """Return the values of fields that config.json must have.

    Raises:
        ValueError: one is missing.
    """
    for name in names:
        if facts.get(name) is None:
            raise ValueError(f"config.json has no {name}: it is not complete.")
    return [facts[name] for name in names]


def require(facts: Facts, **rules: Any) -> None:
    """Refuse a config whose fields ask for something that our model does not have.

    Args:
        facts: config.json.
        rules: field name to the only value that our model can represent, which is also what a
            missing field means.

    Raises:
        ValueError: a field has another value.
    """
    always = {"quantization_config": None, "pruned_heads": None, "chunk_size_feed_forward": 0}
    for name, value in (always | rules).items():
        got = facts.get(name, value)
        if got != value and not (value is None and got in ({}, [], ())):
            raise ValueError(
                f"{name} is {got!r}, but our model can only represent {value!r}: this checkpoint "
                "would compute something else."
            )


def our_activation(facts: Facts, field: str, default: str) -> str:
    """Return our name of the activation.

    Raises:
        ValueError: an activation that our blocks do not have.
    """
    name = facts.get(field, default)
    if name not in OUR_ACTIVATIONS:
        known = ", ".join(OUR_ACTIVATIONS)
        raise ValueError(f"{field} is {name!r}, but our feed-forward network has only {known}.")
    return OUR_ACTIVATIONS[name]


def padding_of(facts: Facts) -> int | None:
    """Return the id that our model treats as padding.

    The library recognizes padding by a mask, our models by the id. So a padding token that also
    begins or ends texts cannot be one for us.
    """
    pad, ends = facts.get("pad_token_id"), facts.get("eos_token_id")
    markers = [facts.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])]
    outside = pad is not None and not 0 <= pad < facts["vocab_size"]
    return None if pad in markers or outside else pad


def text_ids(facts: Facts, bos: int | None = None, eos: int | None = None) -> dict[str, Any]:
    """Return our bos_id and eos_ids; ids that the vocabulary lacks begin and end nothing.

    Args:
        facts: config.json; eos_token_id may be a list.
        bos, eos: the library's defaults for missing fields.
    """
    ends = facts.get("eos_token_id", eos)
    begins, size = [facts.get("bos_token_id", bos)], facts["vocab_size"]
    begins, ends = (
        tuple(i for i in ids if i is not None and 0 <= i < size)
        for ids in (begins, ends if isinstance(ends, list) else [ends])
    )
    return {"bos_id": begins[0] if begins else None, "eos_ids": ends}


def their_ids(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of config.json that say which ids are special."""
    ends = list(config.eos_ids)
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": ends if len(ends) > 1 else (ends or [None])[0],
    }
