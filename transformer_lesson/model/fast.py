"""The same numbers sooner: with `packed`, the file that knows devices, number formats and vendors.

The model is written plainly in the other files. What stands here computes the same in another way
and is put on from outside: `generate` writes inside `writing(model)`, `train` learns inside
`learning(model)`. Which way is faster depends on the processor. So the ways are timed where they
are first needed, with the sizes at hand, and the fastest stays; `CHOSEN` tells which.

TRANSFORMER_LESSON_PLAIN=1 in the environment switches all of it off, for those who want the same
arithmetic on every machine.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil, inf
from time import perf_counter
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.model.masks import CAUSAL, Mask, check_mask

HALF = (torch.bfloat16, torch.float16)
FEW_ROWS, LARGE = 16, 2**16  # rows of x, numbers in a matrix: where timing is worth its time
WORTH = 0.9  # a way that takes more of the plain way's time than this is not worth it
SHORTEST, FEWEST, MOST = 0.005, 3, 9  # seconds and rounds of a race


def plain() -> bool:
    """Whether the environment asks for plain arithmetic."""
    return os.environ.get("TRANSFORMER_LESSON_PLAIN", "") not in ("", "0")


class Race(NamedTuple):
    """Ways to compute the same thing, timed: which one was chosen, and the seconds of each."""

    chosen: str
    seconds: dict[str, float]


CHOSEN: dict[Hashable, Race] = {}


def fastest(key: Hashable, ways: Mapping[str, Callable[..., Tensor]], *inputs) -> Callable:
    """Return the way that computes `way(*inputs)` soonest on this machine.

    Args:
        key: what is computed, of which sizes; the answer is kept for it and the thread count.
        ways: the plain way first. Another is taken only where its numbers are equal, but for
            rounding, and its time is under nine tenths.
    """
    if chosen(key) is None:
        CHOSEN[key, torch.get_num_threads()] = _race(ways, inputs)
    return ways[chosen(key)]


def chosen(key: Hashable) -> str | None:
    """Return which way was found to be fastest, or `None` before there was a race."""
    race = CHOSEN.get((key, torch.get_num_threads()))
    return race and race.chosen


def _race(ways: Mapping[str, Callable[..., Tensor]], inputs: tuple) -> Race:
    first = next(iter(ways))
    expected = ways[first](*inputs)
    equal = [name for name, way in ways.items() if _are_close(way(*inputs), expected)]
    seconds, rounds, begun = dict.fromkeys(equal, inf), 0, perf_counter()
    while rounds < FEWEST or (rounds < MOST and perf_counter() - begun < SHORTEST):
        rounds += 1
        for name in equal:  # in turns, so that a busy moment does not decide
            start = perf_counter()
            ways[name](*inputs)
            seconds[name] = min(seconds[name], perf_counter() - start)
    best = min(equal, key=seconds.get)
    return Race(best if seconds[best] < WORTH * seconds[first] else first, seconds)


def _are_close(result: Tensor, expected: Tensor) -> bool:
    tolerance = 0.05 if expected.dtype in HALF else 1e-4
    largest = expected.abs().max().item()
    return torch.allclose(result, expected, rtol=tolerance, atol=tolerance * largest)


def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V by PyTorch's fused kernel, which never stores the weights.

    In half precision on a CPU the kernel may be slower than in float32: its backward pass always
    is, its forward pass on some processors.

    Args:
        Q, K, V: shapes (batch, head, query, d_head) and twice (batch, kv_head, key, d_head);
            each head of keys and values serves head / kv_head heads of queries.
        mask: as `MultiHeadAttention` takes it.

    Source: Dao et al., "FlashAttention" (2022), algorithm 1.
    """
    if mask is not None and mask is not CAUSAL:
        check_mask(mask, (*Q.shape[:-1], K.size(-2)))
    if Q.dtype not in HALF or not Q.is_cpu or plain() or torch.compiler.is_compiling():
        return _fused(Q, K, V, mask)
    if Q.requires_grad:  # not timed: the same seed shall give the same curve
        return _in_float32(Q, K, V, mask)
    about_as_long = K.size(-2).bit_length()  # a text grows by a token at a time
    key = "attention", Q.dtype, Q.shape, K.size(1), about_as_long, mask is None
    ways = {"fused": _fused, "in float32": _in_float32}
    return fastest(key, ways, Q, K, V, mask)(Q, K, V, mask)


def _fused(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    grouped = Q.size(1) != K.size(1)
    if mask is CAUSAL:
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=grouped)
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, enable_gqa=grouped)


def _in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    with torch.autocast("cpu", enabled=False):  # which would make half numbers of them again
        return _fused(Q.float(), K.float(), V.float(), mask).to(Q.dtype)


@contextmanager
def writing(model: nn.Module) -> Iterator[None]:
    """Let a model multiply few rows by its large matrices in the way that is fastest here.

    A model that writes reads one row per text and step, and some libraries that PyTorch hands
    such a product to are slow at it. Only what is on a CPU changes. Two threads may write with one
    model: the one that ends first leaves the plain way to the other.
    """
    layers = (layer for layer in model.modules() if type(layer) is nn.Linear)
    large = [layer for layer in layers if layer.weight.numel() >= LARGE and layer.weight.is_cpu]
    with _instead_of_forward(large, _few_rows):
        yield


def _few_rows(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    found: dict[int, Callable] = {}  # number of rows to the fastest way

    def forward(x: Tensor) -> Tensor:
        """Return x W^T + b."""
        n, weight = x.numel() // layer.in_features, layer.weight
        if not 0 < n <= FEW_ROWS:
            return F.linear(x, weight, layer.bias)
        if n not in found:
            ways = {"plain": F.linear, "columns": _by_columns}
            ways |= {"vector": _by_vector} if n == 1 else {}
            key = "product", x.dtype, n, weight.shape, layer.bias is None
            found[n] = fastest(key, ways, x, weight, layer.bias)
        return found[n](x, weight, layer.bias)

    return forward


def _by_columns(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T = (W x^T)^T. A single row gets a twin: MKL may need half the time for two columns."""
    rows = x.reshape(-1, x.size(-1))  # (row, d_in)
    n = len(rows)
    y = (weight @ (rows.expand(2, -1) if n == 1 else rows).T)[:, :n].T.contiguous()  # (row, d_out)
    return (y if bias is None else y + bias).view(*x.shape[:-1], -1)


def _by_vector(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = torch.mv(weight, x.flatten())  # (d_out,)
    return (y if bias is None else y + bias).view(*x.shape[:-1], -1)


@contextmanager
def learning(model: nn.Module) -> Iterator[None]:
    """Let a model's dropout on a CPU draw 16 random bits for each number, not 64.

    `nn.Dropout` draws a random number for each number of x; in a small model that is a third of a
    training step. A draw of 64 bits serves four numbers here, in a quarter to a third of the time
    on every processor that was tried. It is not timed, so that the same seed gives the same curve.
    """
    with _instead_of_forward((m for m in model.modules() if type(m) is nn.Dropout), _few_bits):
        yield


def _few_bits(dropout: nn.Dropout) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        """Return x, thinned out in training and unchanged in evaluation."""
        cut = round(dropout.p * 2**16)  # of 65536 equally likely values, so many mean "zero"
        close = abs(cut / 2**16 - dropout.p) <= 0.001 * min(dropout.p, 1 - dropout.p)
        if not (dropout.training and dropout.p > 0 and close and x.is_cpu):
            return F.dropout(x, dropout.p, dropout.training)
        draws = torch.empty(ceil(x.numel() / 4), dtype=torch.int64)
        bits = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()]  # -32768 ... 32767
        keep = bits.ge_(cut - 2**15).to(torch.int8).view(x.shape)  # as a factor, 4 times as fast
        return (x * keep).mul_(1 / (1 - cut / 2**16))

    return forward


@contextmanager
def _instead_of_forward(layers: Iterable[nn.Module], make: Callable) -> Iterator[None]:
    """Let each of these layers compute what `make(layer)` does, until the block ends."""
    changed = [] if plain() else [layer for layer in layers if "forward" not in vars(layer)]
    for layer in changed:
        layer.forward = make(layer)
    try:
        yield
    finally:
        for layer in changed:
            vars(layer).pop("forward", None)  # the class's own is there again
