"""What a machine can do in a second, what a layer asks of it, and how fast it then is.

All speeds are those of one thread: another process then takes time from it, but not its partners.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.checks import one_thread
from transformer_lesson.model.feed_forward import feed_forward

ROUNDS = 5  # of each measurement; the fastest counts
TOO_LARGE = 2**27  # bytes that exceed most caches


class Roofline(NamedTuple):
    """Two limits of a machine: operations per second, and bytes per second from its memory."""

    operations: float
    bandwidth: float

    def at(self, intensity: float) -> float:
        """Return the attainable operations per second at this many operations per byte.

        Source: Williams, Waterman and Patterson, "Roofline" (2009).
        """
        return min(self.operations, intensity * self.bandwidth)


def clock() -> float:
    """Return this thread's own seconds, or, where these come in large steps, those of the day."""
    fine = time.get_clock_info("thread_time").resolution < 1e-5  # not on Windows
    return time.thread_time() if fine else time.perf_counter()


def seconds(*work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the total time of pieces of work on one thread, each by its fastest round.

    Other processes only add time, and rarely disturb a short piece in every round.
    """
    times = []
    with one_thread(), torch.no_grad():
        for _ in range(rounds + 1):
            for piece in work:
                start = clock()
                piece()
                times.append(clock() - start)
    later = times[len(work) :]  # the first round is not counted
    return sum(min(later[i :: len(work)]) for i in range(len(work)))


def measured_roofline(
    sizes: Sequence[int] = (256, 512, 1024), numbers: int = TOO_LARGE // 4
) -> Roofline:
    """Return the limits of one thread, per second.

    They are measurements: a product of another shape may be slightly faster.

    Args:
        sizes: rows and columns of the matrices to multiply: 2 n^3 operations.
        numbers: how many float32, 4 bytes each, a matrix-vector product reads; more than most
            caches hold, and a multiple of 1024.
    """
    squares, matrices = [torch.randn(n, n) for n in sizes], torch.ones(numbers).view(32, 32, -1)
    vector = matrices[0, 0].clone()
    speeds = [
        2 * len(square) ** 3 / seconds(lambda square=square: square @ square) for square in squares
    ]
    read = seconds(*(lambda matrix=matrix: matrix @ vector for matrix in matrices))
    return Roofline(max(speeds), 4 * numbers / read)


def feed_forward_layers(d_model: int, d_ff: int, size: int = 0) -> list[tuple[Tensor, ...]]:
    """Return feed-forward networks of together at least this many bytes, and at least one."""
    count = max(1, math.ceil(size / (8 * d_model * d_ff)))
    shapes = (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)
    return [tuple(torch.randn(shape) for shape in shapes) for _ in range(count)]


def feed_forward_speed(
    layers: Sequence[tuple[Tensor, ...]], tokens: int, network: Callable[..., Tensor] = feed_forward
) -> tuple[float, float]:
    """Return the operations per byte and per second of several feed-forward networks in turn.

    Each weight is read once, for 2 operations per token. The tokens are bytes, too: they are read,
    their hidden layer is written and read, and what comes out is written, all in float32. What
    biases and the activation move is left out.

    Args:
        layers: `W_1`, `b_1`, `W_2` and `b_2` of each. Do they exceed the caches together, then
            each weight comes from memory.
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


def attention_costs(
    batch: int, n_queries: int, n_keys: int, d_model: int, n_heads: int
) -> tuple[float, float, float]:
    """Return what the six products of an attention layer cost, for the whole batch.

    Four project the tokens of the queries; one gives the scores, one the weighted sums of values.
    With t = batch n_queries tokens, they take 2 (4 t d_model^2 + 2 t n_keys d_model) operations.
    Backward each takes two products as large as its own: for its input, and for its weight.

    Args:
        batch: texts at once.
        n_queries: tokens of each that are read or written.
        n_keys: tokens of each that a query attends to; older ones lie in a cache.
        d_model: width.
        n_heads: heads, which share the width.

    Returns:
        Operations forward; forward and backward; and bytes forward, if each product reads both its
        inputs from memory and writes its result in float32.
    """
    tokens, table = batch * n_queries, batch * n_queries * n_heads * n_keys
    forward = 2 * (4 * tokens * d_model**2 + 2 * tokens * n_keys * d_model)
    projections = 4 * (d_model**2 + 2 * tokens * d_model)
    attending = 2 * (tokens * d_model + batch * n_keys * d_model + table)
    return float(forward), float(3 * forward), 4.0 * (projections + attending)


def six_products(
    x: Tensor,
    weights: Sequence[Tensor] | Tensor,
    n_heads: int,
    cache: tuple[Tensor, Tensor] | Tensor | None = None,
) -> Tensor:
    """Return the output of an explicit attention layer without biases or a mask.

    Args:
        x: the tokens of the queries, shape (batch, query, d_model).
        weights: `W_Q`, `W_K`, `W_V` and `W_O`, each (d_model, d_model).
        n_heads: heads.
        cache: all keys and all values, each (batch, head, key, d_head); without it, those of `x`.
            The key and value of `x` are computed either way, and take their places in the cache.
    """
    Q, K, V = ((x @ W).unflatten(-1, (n_heads, -1)).transpose(1, 2) for W in weights[:3])
    if cache is not None:
        K, V = cache
    scores = Q @ K.mT / math.sqrt(Q.size(-1))  # (batch, head, query, key)
    return (scores.softmax(dim=-1) @ V).transpose(1, 2).flatten(2) @ weights[3]


def attention_speed(
    batch: int, n_queries: int, n_keys: int, d_model: int, n_heads: int, size: int = TOO_LARGE
) -> float:
    """Return the operations per second of explicit attention layers in turn.

    Args:
        batch, n_queries, n_keys, d_model, n_heads: as in `attention_costs`.
        size: bytes that the layers' weights and caches exceed together.
    """
    writes = n_queries < n_keys
    held = 4 * d_model * (4 * d_model + 2 * batch * n_keys * writes)
    cached = (2, batch, n_heads, n_keys, d_model // n_heads)
    layers = [
        (torch.randn(4, d_model, d_model) / d_model**0.5, torch.randn(cached) if writes else None)
        for _ in range(min(64, math.ceil(size / held)))
    ]
    x = torch.randn(batch, n_queries, d_model)
    spent = seconds(
        *(lambda layer=layer: six_products(x, layer[0], n_heads, layer[1]) for layer in layers)
    )
    operations, *_ = attention_costs(batch, n_queries, n_keys, d_model, n_heads)
    return len(layers) * operations / spent
