"""Low-rank adaptation: a frozen matrix, and next to it a small product that learns.

W stays as it was. What learns is B A, of rank r: two thin matrices instead of a large one.
Afterwards it is added to W, or removed again.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model.config import Rule, is_number


def lora(
    x: Float[Tensor, "batch n d_in"],
    W: Float[Tensor, "d_out d_in"],
    A: Float[Tensor, "rank d_in"],
    B: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "batch n d_out"]:
    """Return x W^T + alpha / r * (x A^T) B^T: a linear layer with an adapter of rank r.

    The adapter's product goes through r numbers; a matrix as large as W is never built.

    Args:
        x: what the layer reads.
        W: its weight, laid out as `nn.Linear` does.
        A: brings d_in numbers down to r.
        B: brings r numbers up to d_out; zeros at first, so that nothing changes.
        alpha: scales the adapter; divided by r.

    Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021), equation 3 and
        section 4.1.
    """
    adapter = (x @ A.mT) @ B.mT  # (batch, n, rank), then (batch, n, d_out)
    return x @ W.mT + alpha / A.size(0) * adapter


def merged_lora(
    W: Float[Tensor, "d_out d_in"],
    A: Float[Tensor, "rank d_in"],
    B: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "d_out d_in"]:
    """Return W + alpha / r * B A: the one matrix that does what layer and adapter do together.

    Args: as `lora`.

    Source: Hu et al. (2021), section 4.1: no time is lost where the model is used.
    """
    return W + alpha / A.size(0) * (B @ A)


class LoRA(nn.Module):
    """A linear layer whose weight is frozen, with an adapter that learns.

    Args:
        linear: the layer; kept, not copied. It gets no more gradients.
        rank: of the adapter, whose two matrices have the layer's dtype and device.
        alpha: scales the adapter.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        d_out, d_in = linear.weight.shape
        rank = Rule(
            f"an int from 1 to {min(d_in, d_out)}, the layer's smaller side",
            lambda r: is_number(r, int) and 1 <= r <= min(d_in, d_out),
        ).check("rank", rank)
        self.was_learning = _learning(linear)
        self.linear, self.alpha = linear.requires_grad_(False), alpha
        like = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.A = nn.Parameter(torch.randn(rank, d_in, **like) / math.sqrt(d_in))
        self.B = nn.Parameter(torch.zeros(d_out, rank, **like))
        self.train(linear.training)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output plus the adapter's."""
        y = lora(x, self.linear.weight, self.A, self.B, self.alpha)
        return y if self.linear.bias is None else y + self.linear.bias


Slots = list[tuple[nn.Module, str]]
"""Where parameters are: a module, and the parameter's name in it."""


def _slots(model: nn.Module) -> Slots:
    return [(layer, name) for layer in model.modules() for name in layer._parameters]


def _learning(model: nn.Module) -> Slots:
    weights = [(slot, slot[0]._parameters[slot[1]]) for slot in _slots(model)]
    return [slot for slot, weight in weights if weight is not None and weight.requires_grad]


def add_lora(
    model: nn.Module,
    rank: int,
    alpha: float,
    names: Sequence[str] = ("W_Q", "W_V"),
) -> int:
    """Freeze a model and add adapters to all of its layers that have one of these names.

    Args:
        model: changed in place.
        rank, alpha: as `LoRA`.
        names: of linear layers; the paper adapts queries and values.

    Returns:
        How many weights learn from now on.

    Raises:
        ValueError: the model has an adapter already, or no linear layer of one of these names.
    """
    names = dict.fromkeys([names] if isinstance(names, str) else names)
    layers = list(model.modules())
    if any(isinstance(layer, LoRA) for layer in layers):
        raise ValueError("The model has adapters already: merge_lora or remove_lora them first.")
    slots = [(layer, name) for layer in layers for name in names if name in layer._modules]
    if not slots:
        raise ValueError(f"The model has no layer named {' or '.join(names)}.")
    for layer, name in slots:
        if not isinstance(layer._modules[name], nn.Linear):
            kind = type(layer._modules[name]).__name__
            raise ValueError(
                f"{name} is a {kind}, but an adapter needs an nn.Linear: leave it out."
            )
    was_learning = _learning(model)
    linears = {layer._modules[name]: None for layer, name in slots}  # a shared one only once
    adapters = {linear: LoRA(linear, rank, alpha) for linear in linears}
    model.requires_grad_(False)
    for layer, name in slots:
        adapter = adapters[layer._modules[name]]
        setattr(layer, name, adapter.requires_grad_(True))
        adapter.linear.requires_grad_(False)
        adapter.was_learning = was_learning
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def merge_lora(model: nn.Module) -> None:
    """Add each adapter to its layer's matrix, and unfreeze what learned before `add_lora`.

    Args:
        model: changed in place.

    Raises:
        ValueError: an adapted matrix is tied to another layer, which would change with it. Then
            nothing is merged.
    """
    adapters = {layer for layer in model.modules() if isinstance(layer, LoRA)}
    for adapter in adapters:
        weight = adapter.linear.weight
        if sum(layer._parameters[name] is weight for layer, name in _slots(model)) > 1:
            raise ValueError(
                "An adapted layer shares its matrix with another layer, such as the embedding, "
                "which must not change: give it one of its own before you merge, as in "
                "linear.weight = nn.Parameter(linear.weight.clone())."
            )
    with torch.no_grad():
        for adapter in adapters:
            W = merged_lora(adapter.linear.weight, adapter.A, adapter.B, adapter.alpha)
            adapter.linear.weight = nn.Parameter(W)
    remove_lora(model)


def remove_lora(model: nn.Module) -> None:
    """Remove all adapters: the model is bit for bit what it was before, and learns as it did."""
    slots: Slots = []
    for layer in list(model.modules()):
        for name, child in layer._modules.items():
            if isinstance(child, LoRA):
                setattr(layer, name, child.linear)
                slots += child.was_learning
    inside = set(model.modules())
    for layer, name in slots:
        if layer in inside:
            layer._parameters[name].requires_grad_(True)
