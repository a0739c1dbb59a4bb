"""What is the same for every family of checkpoints: names to names, and fields that must fit."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
"""The library's name of an activation to ours."""
THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swish": "silu"}


def same(tensors: Tensors) -> Tensors:
    """Return tensors as they are: most families store one matrix under one name."""
    return dict(tensors)


def nothing_else(facts: Facts, tensors: Tensors) -> Tensors:
    """Return tensors as they are: the family has no old names or unused parts."""
    return tensors


@dataclass(frozen=True)
class Family:
    """How one kind of checkpoint becomes one of our models, and back.

    Args:
        name: as people call it.
        model_type: the name in config.json.
        architecture: the library's class, which to_transformers names.
        prefix: what stands before the names of the stack when there is a head.
        rules: pairs (pattern, replacement) that turn our parameter's name into theirs, in order.
        read_config: config.json to our config, or two of them (source and target).
        build: configs, config.json and the names of the tensors to our model.
        write_config: our model to config.json.
        layers: pairs (our module, their module) that compute the same, in order; {i} is a layer.
        tidy: drops what has no effect and renames what older versions called otherwise.
        aliases: theirs that are one matrix with another name of theirs.
        pack, unpack: turn our one-matrix-per-name into how they store it, and back.
        stacks: our names of the stacks of layers.
    """

    name: str
    model_type: str
    architecture: str
    prefix: str
    rules: tuple[tuple[str, str], ...]
    read_config: Callable[[Facts], tuple[ModelConfig, ...]]
    build: Callable[[tuple[ModelConfig, ...], Facts, Iterable[str]], nn.Module]
    write_config: Callable[[nn.Module], dict[str, Any]]
    layers: tuple[tuple[str, str], ...]
    tidy: Callable[[Facts, Tensors], Tensors] = nothing_else
    aliases: Callable[[nn.Module], dict[str, tuple[str, ...]]] = lambda model: {}
    pack: Callable[[Tensors], Tensors] = same
    unpack: Callable[[Tensors], Tensors] = same

    def rename(self, name: str) -> str:
        """Return the library's name of one of our parameters."""
        for pattern, replacement in self.rules:
            name = re.sub(pattern, replacement, name)
        return name

    def packed(self, model: nn.Module) -> Tensors:
        """Return a model's weights under the library's names and in its shapes."""
        weights = {self.rename(name): w.detach() for name, w in model.named_parameters()}
        return self.pack(weights)


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
    """Refuse a config whose fields ask for what our model does not have.

    Args:
        facts: config.json.
        rules: field name to the one value that our model can represent, which is also what a
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
    """Return the id that our model takes for padding.

    The library is told by a mask what is padding, our models by the id. So a padding token that
    also begins or ends texts cannot be one for us.
    """
    pad, ends = facts.get("pad_token_id"), facts.get("eos_token_id")
    meant = [facts.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])]
    outside = pad is not None and not 0 <= pad < facts["vocab_size"]
    return None if pad in meant or outside else pad
