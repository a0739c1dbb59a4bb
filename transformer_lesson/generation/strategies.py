"""How the next token is chosen: always the likeliest, by chance, or by looking ahead."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from transformer_lesson.model.config import CheckedConfig, Rule, count, is_number, optional, size

above_zero = Rule(
    "above 0 (Greedy() is its limit at 0)", lambda x: is_number(x) and 0 < x < math.inf
)
probability_to_keep = Rule("a probability in (0, 1]", lambda x: is_number(x) and 0 < x <= 1)
zero_or_more = Rule("0 or more", lambda x: is_number(x) and 0 <= x < math.inf)
COLDEST = 1e-30
"""A lower temperature counts as this one: 1 / COLDEST still fits into a float32."""


def top_k_filter(
    logits: Float[Tensor, "*batch vocab_size"], k: int
) -> Float[Tensor, "*batch vocab_size"]:
    """Keep the k highest logits and set the others to -inf, so that softmax gives them 0.

    Exactly k stay, even among equals; all of them if there are fewer than k.

    Args:
        logits: shape (..., vocab_size).
        k: how many tokens to keep.

    Raises:
        ValueError: k is not an int >= 1.

    Source: Fan et al., "Hierarchical Neural Story Generation" (2018), section 5.4.
    """
    if not (is_number(k, int) and k >= 1):
        raise ValueError(f"k is {k!r}, but it must be an int >= 1.")
    best = logits.topk(min(k, logits.size(-1)), dim=-1)  # (..., k)
    return torch.full_like(logits, -math.inf).scatter(-1, best.indices, best.values)


def top_p_filter(
    logits: Float[Tensor, "*batch vocab_size"], p: float
) -> Float[Tensor, "*batch vocab_size"]:
    """Keep the fewest tokens whose probabilities add up to p or more; set the others to -inf.

    The tokens are taken from the likeliest down. The one with which the sum reaches p stays, so
    at least one always does.

    Args:
        logits: shape (..., vocab_size).
        p: probability to keep, above 0; 1 keeps every token.

    Raises:
        ValueError: p is not in (0, 1].

    Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020), section 3.1.
    """
    if not (is_number(p) and 0 < p <= 1):
        raise ValueError(f"p is {p!r}, but it must be a probability in (0, 1].")
    if p == 1:
        return logits.clone()
    ranked = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ranked.values.softmax(dim=-1)  # (..., vocab_size), likeliest first
    before = probabilities.cumsum(dim=-1) - probabilities  # sum over all likelier tokens
    kept = ranked.values.masked_fill(before >= p, -math.inf)
    return torch.full_like(logits, -math.inf).scatter(-1, ranked.indices, kept)


def length_normalized(log_probability, length: int, length_penalty: float):
    """Make hypotheses of different lengths comparable: log P / ((5 + length) / 6)^penalty.

    Every token lowers log P, so without this a beam search prefers short texts.

    Args:
        log_probability: of a whole hypothesis in nats, <= 0; a number or a tensor.
        length: its tokens, including `<eos>` but not what it started from.
        length_penalty: 0 leaves log P as it is; larger values favor longer texts.

    Source: Wu et al., "Google's Neural Machine Translation System" (2016), equation 14;
        "Attention Is All You Need" (2017) uses it with a penalty of 0.6 (section 6.1).
    Differs: many libraries divide by length^penalty instead.
    """
    return log_probability / ((5 + length) / 6) ** length_penalty


@dataclass(frozen=True)
class Greedy:
    """The likeliest token at every step."""

    def choose(
        self, logits: Float[Tensor, "batch vocab_size"], uniform: Tensor | None = None
    ) -> Int64[Tensor, " batch"]:
        """Return the token with the highest logit, for every row."""
        return logits.argmax(dim=-1)


@dataclass(frozen=True)
class Sample(CheckedConfig):
    """A random token at every step, from the model's distribution or part of it.

    Args:
        temperature: logits are divided by it: below 1 sharpens the distribution, above 1
            flattens it. Towards 0 only the likeliest token is left; ties share the probability.
        top_k: draw only from this many likeliest tokens (`top_k_filter`).
        top_p: draw only from the likeliest tokens that together hold this probability
            (`top_p_filter`, after temperature and top_k).
        seed: the same seed gives the same text. Row i of a batch has a generator of its own,
            seeded with (seed, i), so its text does not depend on the other rows.

    Raises:
        ValueError: a value breaks a rule; the message names it.
    """

    temperature: float = above_zero(1.0)
    top_k: int | None = optional(size)(None)
    top_p: float | None = optional(probability_to_keep)(None)
    seed: int = count(0)

    def probabilities(
        self, logits: Float[Tensor, "*batch vocab_size"]
    ) -> Float[Tensor, "*batch vocab_size"]:
        """Return the distribution that is drawn from: after temperature, top_k and top_p."""
        below_best = logits - logits.amax(dim=-1, keepdim=True)  # 0 at the likeliest: never inf
        logits = below_best / max(self.temperature, COLDEST)
        if self.top_k is not None:
            logits = top_k_filter(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p_filter(logits, self.top_p)
        return logits.softmax(dim=-1)

    def uniforms(self, n_rows: int, n_steps: int) -> Float[Tensor, "n_steps n_rows"]:
        """Return the random numbers in [0, 1) that decide each step of each row."""
        seeds = [np.random.SeedSequence(self.seed, spawn_key=(row,)) for row in range(n_rows)]
        rows = [np.random.default_rng(seed).random(n_steps, np.float32) for seed in seeds]
        return torch.from_numpy(np.stack(rows, axis=1))

    def choose(
        self, logits: Float[Tensor, "batch vocab_size"], uniform: Float[Tensor, " batch"]
    ) -> Int64[Tensor, " batch"]:
        """Return the token at which the running sum of probabilities passes `uniform`."""
        sums = self.probabilities(logits).cumsum(dim=-1)  # (batch, vocab_size)
        return (sums <= uniform[:, None] * sums[:, -1:]).sum(dim=-1)


@dataclass(frozen=True)
class Beam(CheckedConfig):
    """Keep the `width` likeliest texts at every step; see `beam_search`.

    Args:
        width: hypotheses that are kept at each step; 1 is greedy.
        length_penalty: see `length_normalized`.

    Raises:
        ValueError: width is under 1 or length_penalty negative.
    """

    width: int = size(4)
    length_penalty: float = zero_or_more(0.6)


Strategy = Greedy | Sample | Beam
GREEDY = Greedy()
