"""The same numbers, faster. Only this file and `packed` know devices, number formats and vendors.

The model is written plainly in the other files. The code here computes the same in another way and
is applied from outside: `generate` writes inside `writing(model)`, `train` learns inside
`learning(model)`. Which way is faster depends on the processor, and on whether a matrix is in its
cache or comes from memory every time. So the ways are timed while they work; see `Race`.

TRANSFORMER_LESSON_PLAIN=1 in the environment switches all of it off, for those who want the same
arithmetic on every machine.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from time import perf_counter
from types import MethodType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.model.masks import CAUSAL, Mask, check_mask

HALF = (torch.bfloat16, torch.float16)
FEW_ROWS, LARGE = 16, 2**16  # rows of x, numbers in a matrix: where timing pays off
WORTH = 0.9  # a way must take less than this share of the plain way's time
SAMPLES = 9  # calls that are timed for each way
SOON, LATE = 128, 4096  # calls until the ways are timed again: the first time, and at most


def plain() -> bool:
    """Whether the environment asks for plain arithmetic."""
    return os.environ.get("TRANSFORMER_LESSON_PLAIN", "") not in ("", "0")


class Race:
    """Ways to compute the same thing, timed on calls that are needed anyway.

    The ways take turns, so that each finds the matrices where real work leaves them, in cache or
    memory, and a busy moment hits all ways alike. Then the fastest way is `chosen` if it clearly
    beats the plain way, which comes first. A way's time is the lower quartile of its calls: on a
    busy machine the median may measure other programs. What wins at first, or in a busy moment,
    may not stay fastest: the ways are timed again after a while, and again after a longer one.
    Two threads may share a race.

    Attributes:
        chosen: the way's name; `None` while the ways are timed.
        seconds: each way's name to the times of its calls. A way whose numbers differ from the
            plain way's by more than rounding does not compete.
    """

    def __init__(self):
        self.chosen: str | None = None
        self.seconds: dict[str, list[float]] = {}
        self.calls, self.kept = 0, SOON // 4

    def run(self, ways: Mapping[str, Callable[..., Tensor]], *inputs) -> Tensor:
        """Return `way(*inputs)` for the chosen way, or for the one whose turn it is."""
        self.calls += 1
        chosen = self.chosen
        if chosen is None or self.calls > self.kept:
            return self._timed(ways, inputs)
        return ways[chosen](*inputs)

    def _timed(self, ways: Mapping[str, Callable[..., Tensor]], inputs: tuple) -> Tensor:
        seconds = self.seconds
        if not seconds or self.chosen is not None:
            return self._begin(ways, inputs)
        name = min(seconds, key=lambda way: len(seconds[way]))
        start = perf_counter()
        result = ways[name](*inputs)
        seconds[name].append(perf_counter() - start)
        if all(len(times) >= SAMPLES for times in seconds.values()):
            self.chosen = _shortest(seconds)
        return result

    def _begin(self, ways: Mapping[str, Callable[..., Tensor]], inputs: tuple) -> Tensor:
        results = {name: way(*inputs) for name, way in ways.items()}  # the first calls take longer
        expected = next(iter(results.values()))
        self.chosen, self.calls, self.kept = None, 0, min(4 * self.kept, LATE)
        self.seconds = {name: [] for name, y in results.items() if _are_close(y, expected)}
        return expected


RACES: dict[Hashable, Race] = {}
"""(What is computed, with its sizes; number of threads) to the race of its ways."""


def race_of(key: Hashable) -> Race:
    """Return the race for this key and the current number of threads."""
    key = key, torch.get_num_threads()
    return RACES.get(key) or RACES.setdefault(key, Race())


def _shortest(seconds: Mapping[str, list[float]]) -> str:
    quartiles = {name: sorted(times)[len(times) // 4] for name, times in seconds.items()}
    first, best = next(iter(quartiles)), min(quartiles, key=quartiles.get)
    return best if quartiles[best] < WORTH * quartiles[first] else first


def _are_close(result: Tensor, expected: Tensor) -> bool:
    tolerance = 0.05 if expected.dtype in HALF else 1e-4
    largest = expected.nan_to_num(0, 0, 0).abs().max().item()
    return torch.allclose(result, expected, tolerance, tolerance * largest, equal_nan=True)


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
    if Q.requires_grad or torch.is_autocast_enabled("cpu"):  # untimed: same seed, same curve
        return _in_float32(Q, K, V, mask)
    rough_length = K.size(-2).bit_length()  # a text grows by one token at a time
    key = "attention", Q.dtype, Q.shape, K.size(1), rough_length, mask is None
    ways = {"fused": _fused, "in float32": _in_float32}
    return race_of(key).run(ways, Q, K, V, mask)


def _fused(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    grouped = Q.size(1) != K.size(1)
    if mask is CAUSAL:
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=grouped)
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, enable_gqa=grouped)


def _in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    with torch.autocast("cpu", enabled=False):  # which would turn them back to half precision
        return _fused(Q.float(), K.float(), V.float(), mask).to(Q.dtype)


@contextmanager
def writing(model: nn.Module) -> Iterator[None]:
    """Let a model multiply few rows by its large matrices in whatever way is fastest here.

    A model that writes reads one row per text and step. Some of the libraries that PyTorch calls
    for such a product are slow at it, though none in float16. Only layers on a CPU change. Two
    threads may write with one model: the one that ends first leaves the plain way to the other.
    """
    layers = (layer for layer in model.modules() if type(layer) is nn.Linear)
    large = [layer for layer in layers if layer.weight.numel() >= LARGE and layer.weight.is_cpu]
    with _replacing_forward((x for x in large if x.weight.dtype in WAYS), _few_rows):
        yield


def _few_rows(layer: nn.Linear) -> Callable[[nn.Linear, Tensor], Tensor]:
    rows, ways = WAYS[layer.weight.dtype]
    races: dict[int, Race] = {}  # by number of rows

    def forward(layer: nn.Linear, x: Tensor) -> Tensor:
        """Return x W^T + b."""
        n, weight = x.numel() // layer.in_features, layer.weight
        if not 0 < n <= rows:
            return F.linear(x, weight, layer.bias)
        if n not in races:
            races[n] = race_of(("product", x.dtype, n, weight.shape, layer.bias is None))
        return races[n].run(ways, x, weight, layer.bias)

    return forward


def _by_columns(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T = (W x^T)^T. A single row gets a second, of zeros: MKL may need half the time for two.

    The two lie one after the other in memory: interleaved, they take several times as long.
    """
    rows = x.reshape(-1, x.size(-1))  # (row, d_in)
    n = len(rows)
    columns = (F.pad(rows, (0, 0, 0, 1)) if n == 1 else rows).T  # (d_in, row)
    y = (weight @ columns)[:, :n].T.contiguous()  # (row, d_out)
    return (y if bias is None else y + bias).view(*x.shape[:-1], -1)


def _by_vector(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = torch.mv(weight, x.flatten())  # (d_out,)
    return (y if bias is None else y + bias).view(*x.shape[:-1], -1)


WAYS = {
    torch.float32: (FEW_ROWS, {"plain": F.linear, "columns": _by_columns}),
    torch.bfloat16: (1, {"plain": F.linear, "vector": _by_vector}),
}
"""For each dtype: the most rows at which a way other than the plain one may win, and the ways."""


@contextmanager
def learning(model: nn.Module) -> Iterator[None]:
    """Let a model's dropout on a CPU draw 16 random bits for each number, not 64.

    `nn.Dropout` draws a random number for each number of x; in a small model that is a third of a
    training step. A draw of 64 bits serves four numbers here, in a quarter to a third of the time
    on every processor that was tried. It is not timed, so that the same seed gives the same curve.
    """
    dropouts = (layer for layer in model.modules() if type(layer) is nn.Dropout)
    with _replacing_forward(dropouts, lambda _: _few_bits):
        yield


def _few_bits(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """Return x, thinned out in training and unchanged in evaluation."""
    cut = round(dropout.p * 2**16)  # how many of 65536 equally likely values mean "zero"
    close = abs(cut / 2**16 - dropout.p) <= 0.001 * min(dropout.p, 1 - dropout.p)
    if not (dropout.training and dropout.p > 0 and close and x.is_cpu):
        return F.dropout(x, dropout.p, dropout.training)
    draws = torch.empty(ceil(x.numel() / 4), dtype=torch.int64)
    bits = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()]  # -32768 ... 32767
    keep = bits.ge_(cut - 2**15).to(torch.int8).view(x.shape)  # int8 multiplies 4 times as fast
    return (x * keep).mul_(1 / (1 - cut / 2**16))


@contextmanager
def _replacing_forward(layers: Iterable[nn.Module], make: Callable) -> Iterator[None]:
    """Replace each layer's forward by `make(layer)` until the block ends.

    A copy made of a layer meanwhile computes with its own weights.
    """
    changed = [] if plain() else [layer for layer in layers if "forward" not in vars(layer)]
    for layer in changed:
        layer.forward = MethodType(make(layer), layer)
    try:
        yield
    finally:
        for layer in changed:
            vars(layer).pop("forward", None)  # back to the class's own
