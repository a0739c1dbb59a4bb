"""This machine's limits: operations per second, and bytes per second from memory.

Short because each is a measurement of a few lines.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.model.feed_forward import feed_forward

ROUNDS = 5  # of each measurement; the fastest counts


class Roofline(NamedTuple):
    """Two limits of a machine: operations per second, and bytes per second from its memory."""

    operations: float
    bandwidth: float

    def at(self, intensity: float) -> float:
        """Return the attainable operations per second at this many operations per byte.

        Source: Williams, Waterman and Patterson, "Roofline" (2009).
        """
        return min(self.operations, intensity * self.bandwidth)


def seconds(*work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the total time of pieces of work, each measured by its fastest round.

    Other processes only add time, and rarely disturb a short piece in every round.
    """
    taken = []
    for _ in range(rounds + 1):
        for piece in work:
            start = time.perf_counter()
            piece()
            taken.append(time.perf_counter() - start)
    later = taken[len(work) :]  # the first round is not counted
    return sum(min(later[i :: len(work)]) for i in range(len(work)))


def measured_roofline(sizes: Sequence[int] = (512, 1024, 2048), numbers: int = 2**25) -> Roofline:
    """Return this machine's limits per second with torch's current number of threads.

    They are measurements: a product of another shape may be slightly faster.

    Args:
        sizes: rows and columns of the matrices to multiply: 2 n^3 operations.
        numbers: how many float32, 4 bytes each, a matrix-vector product reads; more than most
            caches hold, and a multiple of 1024.
    """
    squares, matrices = [torch.randn(n, n) for n in sizes], torch.ones(numbers).view(32, 32, -1)
    vector = matrices[0, 0].clone()
    speeds = [2 * len(one) ** 3 / seconds(lambda one=one: one @ one) for one in squares]
    read = seconds(*(lambda matrix=matrix: matrix @ vector for matrix in matrices))
    return Roofline(max(speeds), 4 * numbers / read)


def feed_forward_speed(
    layers: Sequence[tuple[Tensor, ...]], tokens: int, network: Callable[..., Tensor] = feed_forward
) -> tuple[float, float]:
    """Return the operations per byte and per second of several feed-forward networks in turn.

    Each weight is read once, for 2 operations per token. The tokens are bytes, too: they are read,
    their hidden layer is written and read, and what comes out is written, all in float32. What
    biases and the activation move is left out. All layers together must exceed the caches.

    Args:
        layers: `W_1`, `b_1`, `W_2` and `b_2` of each.
        tokens: rows that go through.
        network: takes those rows and a layer, as lesson 05's does.
    """
    d_model, d_ff = layers[0][0].shape
    x = torch.randn(tokens, d_model)
    spent = seconds(*(lambda layer=layer: network(x, *layer) for layer in layers))
    operations, moved = (
        4 * d_model * d_ff * tokens,
        2 * d_model * d_ff + 2 * tokens * (d_model + d_ff),
    )
    return operations / (4 * moved), len(layers) * operations / spent
