"""What this machine can do at most: products a second, and numbers that memory delivers.

Short, because both are a measurement of a few lines.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor


class Roofline(NamedTuple):
    """Two limits of a machine: operations a second, and bytes a second from its memory."""

    operations: float
    bandwidth: float

    def at(self, intensity: float) -> float:
        """Return the operations a second that are possible with so many operations a byte.

        Source: Williams, Waterman and Patterson, "Roofline" (2009).
        """
        return min(self.operations, intensity * self.bandwidth)


def seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the median time of a few calls; one before them is not counted."""
    work()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def measured_roofline(n: int = 1024, numbers: int = 2**25) -> Roofline:
    """Measure this machine with the threads that torch has now, in about a second.

    Args:
        n: rows and columns of the matrices that are multiplied: 2 n^3 operations.
        numbers: of float32 that are added up, more than any cache holds: 4 bytes each.
    """
    square, long = torch.randn(n, n), torch.ones(numbers)
    return Roofline(2 * n**3 / seconds(lambda: square @ square), 4 * numbers / seconds(long.sum))


def feed_forward_speed(weights: Sequence[Tensor], tokens: int) -> tuple[float, float]:
    """Return operations a byte and operations a second of products with one matrix after the other.

    Each weight is read once and takes part in 2 operations for each token, so there are tokens / 2
    operations for each byte of float32. The matrices must be too many for the caches together.

    Args:
        weights: matrices of shape (d_in, d_out), all alike.
        tokens: rows that are multiplied with each.
    """
    x = torch.randn(tokens, weights[0].size(0))
    spent = seconds(lambda: [x @ weight for weight in weights])
    operations = 2 * tokens * sum(weight.numel() for weight in weights)
    read = 4 * sum(weight.numel() for weight in weights)
    return operations / read, operations / spent
