"""Finding tensors in what a model returns, comparing them, and noise that is always the same."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

NOISE = torch.randn(65_537, generator=torch.Generator().manual_seed(1))  # a prime: no row repeats


def noise_like(tensor: Tensor) -> Tensor:
    """Return noise of a tensor's shape, the same in each call, and quickly for large ones."""
    times = tensor.numel() // len(NOISE) + 1
    return NOISE.repeat(times)[: tensor.numel()].view(tensor.shape)


def tensors_in(thing: Any) -> Iterator[Tensor]:
    """Yield the tensors in lists, tuples, dictionaries and the outputs of libraries.

    Nested tensors, of PyTorch's fast path for evaluation, are left out: they have no shape.
    """
    if torch.is_tensor(thing):
        if not thing.is_nested:
            yield thing
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from tensors_in(item)
    elif isinstance(thing, Mapping) or hasattr(thing, "items"):
        for item in thing.values():
            yield from tensors_in(item)


def logits_of(output: Any) -> Tensor:
    """Return a model's logits, whatever they come wrapped in."""
    if torch.is_tensor(output):
        return output
    for name in ("logits", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            return getattr(output, name)
    return next(tensors_in(output))


def are_ids(read: Tensor, ids: Tensor) -> bool:
    """Whether these are the ids: text by token, token by text, or one after the other."""
    ways = (ids, ids.T, ids.flatten())
    return any(read.shape == way.shape and torch.equal(read, way) for way in ways)


def differ(a: Tensor, b: Tensor) -> bool:
    """Whether two outputs differ by more than rounding."""
    if a.numel() == 0:
        return False
    if a.isnan().any() or b.isnan().any():
        return bool((a.isnan() != b.isnan()).any())
    spread = float(a.std()) if a.numel() > 1 else 0.0
    largest = float(a.masked_fill(a.isinf(), 0).abs().max())
    rounding = 3e-5 * max(spread, 1e-4) + 3e-6 * largest
    if not math.isfinite(rounding):
        rounding = 3e-6 * largest
    return float((a - b).nan_to_num(0.0).abs().max()) > rounding


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference of two outputs."""
    return float((a - b).abs().max()) if a.numel() else 0.0
