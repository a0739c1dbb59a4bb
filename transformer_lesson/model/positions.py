"""Telling a model where each token is: sinusoidal, learned, rotary and relative positions."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoidal_encoding(
    n_positions: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "n_positions d_model"]:
    """Return one vector of sines and cosines for each position.

    PE(pos, 2i) = sin(pos / base^(2i / d_model)),  PE(pos, 2i + 1) = cos(of the same angle).
    Positions and dimensions count from 0. Each pair of dimensions turns like the hand of a
    clock; its wavelength goes from 2 pi tokens (first pair) towards base * 2 pi (last).

    Args:
        n_positions: how many positions, from 0.
        d_model: numbers per position; even, because sine and cosine come in pairs.
        base: sets the longest wavelength.

    Raises:
        ValueError: a size is below 1, d_model is odd, or base is not positive.

    Source: "Attention Is All You Need" (2017), section 3.5. The powers of `base` are computed
        as exponentials of logarithms, as in the authors' own code.
    """
    if n_positions < 1 or d_model < 1:
        raise ValueError(f"n_positions is {n_positions} and d_model {d_model}: both must be >= 1.")
    if d_model % 2:
        raise ValueError(f"d_model is {d_model}, but sine and cosine come in pairs: make it even.")
    if not base > 0:
        raise ValueError(f"base is {base}, but wavelengths need a positive base.")
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 0, 2, 4, ... = 2i
    frequency = torch.exp(even * (-math.log(base) / d_model))  # (d_model / 2,) radians per token
    angle = torch.arange(n_positions)[:, None] * frequency  # (n_positions, d_model / 2)
    encoding = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (n_positions, d_model)
    return encoding.to(torch.get_default_dtype())


def apply_rotary(
    x: Float[Tensor, "*batch n d_head"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "*batch n d_head"]:
    """Rotate each pair of numbers of a query or key by an angle that grows with its position.

    Number j is paired with number j + d_head / 2, and the pair is turned by
    pos / base^(2j / d_head) radians. The dot product of a rotated query and a rotated key
    depends on their distance only.

    Args:
        x: queries or keys, shape (..., n, d_head); d_head even.
        positions: position of each token, shape (n,).
        base: sets the slowest rotation.

    Raises:
        ValueError: d_head is odd.

    Source: Su et al., "RoFormer" (2021), equation 34.
    Differs: the paper pairs neighbors (2j, 2j + 1); Llama's code pairs halves, as here.
    """
    angle = rotary_angles(positions, x.size(-1), base)  # (n, d_head / 2)
    return turn_pairs(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def rotary_angles(
    positions: Int[Tensor, " n"], d_head: int, base: float
) -> Float[Tensor, "n half"]:
    """Return by how many radians each pair of numbers turns at each position.

    In float32, a frequency's last digit counts: at position 1,400, it moves an angle by 1e-4. The
    powers are taken as Llama's code takes them, so that both round alike.
    """
    half, odd = divmod(d_head, 2)
    if odd:
        raise ValueError(f"d_head is {d_head}, but rotary positions turn pairs: make it even.")
    steps = torch.arange(half, device=positions.device)
    return positions[:, None] * (1 / base ** (steps / half))


def stretched_frequencies(
    d_head: int,
    base: float,
    trained_length: int,
    factor: float,
    low: float = 1.0,
    high: float = 4.0,
) -> Float[Tensor, " half"]:
    """Return how fast each pair turns in a model that is to read `factor` times its trained length.

    A pair that made more than `high` whole turns within the trained length has met all of its
    angles: it keeps its frequency f. One that made fewer than `low` would reach angles it never
    saw: it turns by f / factor. Between the two the frequency changes linearly,

        turns = trained_length f / (2 pi),    keep = (turns - low) / (high - low), from 0 to 1,
        stretched = keep f + (1 - keep) f / factor.

    Args:
        d_head: numbers of a query or key; even.
        base: of the rotary angles: f = base^(-2j / d_head) radians per token for pair j.
        trained_length: tokens of the texts that the model learned from.
        factor: how many times as long the texts to read are.
        low, high: whole turns, low < high.

    Returns:
        Radians per token of each pair, shape (d_head / 2,).

    Raises:
        ValueError: an odd d_head, base, trained_length or factor not above 0, low not under high.

    Source: Peng et al., "YaRN" (2023), section 3.2 ("NTK by parts"), with alpha = low and
        beta = high; Llama 3.1 reads 128 k tokens with low 1, high 4 and factor 8.
    Differs: YaRN also makes the scores a little sharper (its section 3.3), and has beta = 32.
    """
    for name, value in (("base", base), ("trained_length", trained_length), ("factor", factor)):
        if not value > 0:
            raise ValueError(f"{name} is {value}, but a rotation needs it above 0.")
    if not low < high:
        raise ValueError(f"low is {low} and high {high}: make low the smaller one.")
    frequency = rotary_angles(torch.tensor([1]), d_head, base)[0]  # (d_head / 2,) radians per token
    turns = trained_length * frequency / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return keep * frequency + (1 - keep) * frequency / factor


def turn_pairs(
    x: Float[Tensor, "*batch n d_head"],
    cos: Float[Tensor, "n half"],
    sin: Float[Tensor, "n half"],
) -> Float[Tensor, "*batch n d_head"]:
    """Turn each pair of numbers (j, j + d_head / 2) by the angle of this cosine and sine."""
    first, second = x.chunk(2, dim=-1)  # each (..., n, d_head / 2)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class SinusoidalPositions(nn.Module):
    """Looks positions up in a fixed table of `sinusoidal_encoding`; nothing is trained.

    The table is a buffer: it moves with the model to another device, and it is not saved, because
    the formula gives it again.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        table = sinusoidal_encoding(max_len, d_model)  # (max_len, d_model)
        self.register_buffer("table", table, persistent=False)

    def forward(self, positions: Int[Tensor, "*batch n"]) -> Float[Tensor, "*batch n d_model"]:
        """Return the encoding of each position."""
        return self.table[positions]


class LearnedPositions(nn.Embedding):
    """Looks positions up in a trained table, as GPT-2 and BERT do."""

    def __init__(self, max_len: int, d_model: int):
        super().__init__(max_len, d_model)
        nn.init.normal_(self.weight, std=0.02)


class RotaryPositions(nn.Module):
    """Rotates queries or keys by their position; see `apply_rotary`.

    All layers of a model rotate by the same angles, so the last cosines and sines are cached.

    Args:
        base: sets the slowest rotation.
        divisors: what each pair's frequency is divided by, or () for nothing.
        d_rotary: how many numbers are rotated, the first ones; `None` for all.
    """

    def __init__(
        self,
        base: float = 10000.0,
        divisors: Sequence[float] = (),
        d_rotary: int | None = None,
    ):
        super().__init__()
        self.base, self.divisors, self.d_rotary = base, divisors, d_rotary
        self.last = None, ()  # key, and its cosines and sines

    def forward(
        self, x: Float[Tensor, "*batch n d_head"], start: int = 0
    ) -> Float[Tensor, "*batch n d_head"]:
        """Rotate tokens at the positions start, start + 1, ..."""
        if self.d_rotary is None:
            return self._turned(x, start)
        turned = self._turned(x[..., : self.d_rotary], start)
        return torch.cat([turned, x[..., self.d_rotary :]], dim=-1)

    def _turned(self, x: Tensor, start: int) -> Tensor:
        if torch.compiler.is_compiling():  # a compiled model keeps nothing from call to call
            return turn_pairs(x, *self._turns(x, start))
        key = self.base, start, *x.shape[-2:], x.dtype, x.device, torch.is_inference_mode_enabled()
        cached_key, turns = self.last
        if cached_key != key:
            turns = self._turns(x, start)
            self.last = key, turns
        return turn_pairs(x, *turns)

    def _turns(self, x: Tensor, start: int) -> tuple[Tensor, Tensor]:
        positions = torch.arange(start, start + x.size(-2), device=x.device)
        angle = rotary_angles(positions, x.size(-1), self.base)  # (n, d_head / 2)
        if self.divisors:
            angle = angle / torch.tensor(self.divisors, device=x.device)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def distance_buckets(
    distance: Int[Tensor, "*shape"], n_buckets: int, max_distance: int, causal: bool
) -> Int[Tensor, "*shape"]:
    """Return which of n_buckets each distance falls into: short ones each have their own.

    Half of a direction's buckets hold one distance each, from 0. The others hold ranges that grow
    as logarithms do; the last one begins before max_distance and has no end.

    Args:
        distance: position of the key minus position of the query.
        n_buckets: for both directions, half of them each, unless causal.
        max_distance: from here on all distances share a bucket.
        causal: whether keys only come before queries; later ones then count as distance 0.

    Source: Raffel et al., "T5" (2020), section 2.1, as in the authors' code.
    """
    if causal:
        n, first, far = n_buckets, torch.zeros_like(distance), (-distance).clamp(min=0)
    else:
        n = n_buckets // 2
        first, far = (distance > 0).long() * n, distance.abs()
    exact = n // 2
    growth = (far.float() / exact).log() / math.log(max_distance / exact) * (n - exact)
    ranges = exact + growth.clamp(min=0).long()
    return first + torch.where(far < exact, far, ranges.clamp(max=n - 1))


class RelativePositions(nn.Module):
    """A trained number for each head and each bucket of distances, added to scores.

    All layers of a stack share one table; see `distance_buckets`.

    Args:
        n_heads: heads, each with its own numbers.
        n_buckets, max_distance: `relative_buckets` and `relative_distance` of a config.
        causal: whether tokens only see what is before them.

    Source: Raffel et al., "T5" (2020), section 2.1.
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, causal: bool):
        super().__init__()
        self.max_distance, self.causal = max_distance, causal
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self, n_queries: int, n_keys: int, start: int = 0
    ) -> Float[Tensor, "1 head query key"]:
        """Return what is added to the scores of queries at start, start + 1, ..."""
        places = torch.arange(max(n_keys, start + n_queries), device=self.weight.device)
        distance = places[:n_keys] - places[start : start + n_queries, None]  # (query, key)
        buckets = distance_buckets(distance, len(self.weight), self.max_distance, self.causal)
        return self.weight[buckets].permute(2, 0, 1)[None]  # (1, head, query, key)
