"""Which number is the largest, by a rule for ties that rounding cannot overturn.

Two sums that are equal on paper often differ in their last digit, one way on one processor and
the other way on another. Whatever picks the largest, the nearest or the best asks here: values
that agree to within `CLOSE` are equal, and ties go to the first.
"""

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

CLOSE = 1e-4  # relative to the largest; rounding through several layers stays well below


def is_largest(values: Shaped[Tensor, "*axes n"]) -> Bool[Tensor, "*axes n"]:
    """Return which values of the last axis are its largest, up to rounding."""
    top = values.amax(dim=-1, keepdim=True)
    return values >= top * (1 - CLOSE * top.sign())  # also of infinities


def first_largest(values: Shaped[Tensor, "*axes n"]) -> Int[Tensor, "*axes"]:
    """Return the index of the largest value on the last axis; ties go to the first."""
    return is_largest(values).int().argmax(dim=-1)


def from_largest(values: Shaped[Tensor, " n"], count: int) -> list[int]:
    """Return the indices of the `count` largest values, the largest first, ties in their order."""
    remaining, order = values.clone(), []
    for _ in range(min(count, len(values))):
        order.append(int(first_largest(remaining)))
        remaining[order[-1]] = -torch.inf
    return order
