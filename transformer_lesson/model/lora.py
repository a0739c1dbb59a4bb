"""Low-rank adaptation: a frozen matrix, and beside it a small product that learns.

W stays as it was. What is learned is B A, of rank r: two thin matrices instead of a large one.
Afterwards it is added to W, or taken off again.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


def lora(
    x: Float[Tensor, "batch n d_in"],
    W: Float[Tensor, "d_out d_in"],
    A: Float[Tensor, "rank d_in"],
    B: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "batch n d_out"]:
    """Return x W^T + alpha / r * (x A^T) B^T: a linear layer with an adapter of rank r.

    The adapter's own product goes through r numbers; a matrix as large as W is never made.

    Args:
        x: what the layer reads.
        W: its weight, laid out as `nn.Linear` does.
        A: brings d_in numbers down to r.
        B: brings r numbers up to d_out; zeros at first, so that nothing changes.
        alpha: how loud the adapter is; divided by r.

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
        linear: the layer; it is kept, not copied, and gets no gradient any more.
        rank: of the adapter.
        alpha: how loud it is.
        function: what computes the layer, as `lora` does.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float, function: Callable = lora):
        super().__init__()
        if not 1 <= rank <= min(linear.in_features, linear.out_features):
            raise ValueError(
                f"rank is {rank}, but it must be from 1 to "
                f"{min(linear.in_features, linear.out_features)}, the layer's smaller side."
            )
        self.linear, self.alpha, self.function = linear.requires_grad_(False), alpha, function
        d_in = linear.in_features
        self.A = nn.Parameter(torch.randn(rank, d_in) / math.sqrt(d_in))
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return what the layer gives, and the adapter's part."""
        made = self.function(x, self.linear.weight, self.A, self.B, self.alpha)
        return made if self.linear.bias is None else made + self.linear.bias

    def merged(self) -> nn.Linear:
        """Return a new linear layer that does the same."""
        linear = self.linear
        new = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        with torch.no_grad():
            new.weight.copy_(merged_lora(linear.weight, self.A, self.B, self.alpha))
            if linear.bias is not None:
                new.bias.copy_(linear.bias)
        return new


def add_lora(
    model: nn.Module,
    rank: int,
    alpha: float,
    names: Sequence[str] = ("W_Q", "W_V"),
    function: Callable = lora,
) -> int:
    """Freeze a model and put adapters at all of its layers that have one of these names.

    Args:
        model: changed in place.
        rank, alpha, function: as `LoRA`.
        names: of linear layers; the paper adapts queries and values.

    Returns:
        How many weights learn from now on.

    Raises:
        ValueError: the model has no layer of that name, or an adapter already.
    """
    layers = list(model.modules())
    if any(isinstance(layer, LoRA) for layer in layers):
        raise ValueError("The model has adapters already: merge_lora or remove_lora them first.")
    found = [(layer, name) for layer in layers for name in names if hasattr(layer, name)]
    if not found:
        raise ValueError(f"The model has no layer named {' or '.join(names)}.")
    model.requires_grad_(False)
    for layer, name in found:
        setattr(layer, name, LoRA(getattr(layer, name), rank, alpha, function))
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def merge_lora(model: nn.Module) -> None:
    """Put one matrix in the place of each layer with its adapter, in a model as it stands."""
    _exchange(model, LoRA.merged)


def remove_lora(model: nn.Module) -> None:
    """Take all adapters off. The model is what it was before, to the bit."""
    _exchange(model, lambda layer: layer.linear)


def _exchange(model: nn.Module, by: Callable[[LoRA], nn.Linear]) -> None:
    for layer in list(model.modules()):
        for name, child in list(layer.named_children()):
            if isinstance(child, LoRA):
                setattr(layer, name, by(child))
