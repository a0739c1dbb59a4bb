"""Speculative decoding: a cheap model guesses several tokens, a large one judges them in one pass.

What is written has the large model's distribution exactly, however bad the guesses are.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def accept_and_residual(
    p: Float[Tensor, "*batch vocab_size"], q: Float[Tensor, "*batch vocab_size"]
) -> tuple[Float[Tensor, "*batch vocab_size"], Float[Tensor, "*batch vocab_size"]]:
    """Return the probability of accepting each guess, and what to draw from if it is refused.

        accept = min(1, p / q)        residual = max(0, p - q) / sum(max(0, p - q))

    A guess x is drawn from q, accepted with probability accept[x], and otherwise replaced by a
    token drawn from residual. Token x is written with probability q[x] accept[x] = min(p[x], q[x])
    as a guess and max(0, p[x] - q[x]) as a replacement: together p[x], as if drawn from p.

    Args:
        p: the large model's probabilities, shape (..., vocab_size).
        q: the draft model's. Where it is 0 a token is never guessed, and accept is 1.

    Returns:
        accept and residual, shape (..., vocab_size). Where p = q nothing is refused, and residual
        is p.

    Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (2023),
        section 2.3; Chen et al., "Accelerating Large Language Model Decoding with Speculative
        Sampling" (2023), algorithm 2.
    """
    accept = torch.where(q > 0, p / q, 1.0).clamp(max=1.0)
    missing = (p - q).clamp(min=0.0)  # what the draft gives too little of
    total = missing.sum(dim=-1, keepdim=True)
    return accept, torch.where(total > 0, missing / total, p)


def draw(weights: Float[Tensor, " vocab_size"], uniform: float) -> int:
    """Return the token at which the running sum of weights passes `uniform` of the whole sum.

    Args:
        weights: probabilities, or numbers >= 0 in proportion to them.
        uniform: a random number in [0, 1).
    """
    sums = weights.double().cumsum(dim=-1)
    return int((sums <= uniform * sums[-1]).sum())


@dataclass(frozen=True)
class Speculation:
    """What was written, and what it took.

    Args:
        ids: from `<bos>` on.
        passes: how often the large model was asked.
        guessed: tokens that the draft model proposed.
        accepted: how many of them were taken.
    """

    ids: list[int]
    passes: int
    guessed: int
    accepted: int


def speculative_decode(
    probabilities: Callable[[list[int]], Tensor],
    draft_probabilities: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int | None,
    max_len: int,
    guesses: int = 4,
    uniform: Callable[[], float] | None = None,
) -> Speculation:
    """Write as `probabilities` would, asking it once for several tokens.

    Each round the draft model guesses some tokens, one after the other. One pass of the large
    model says what it would have written in place of each and after the last. The guesses are
    accepted up to the first refusal, which a token of the residual replaces; if all are accepted,
    the pass yields one more token. So a round writes at least one token.

    Greedy search is the case in which both give one token all the probability.

    Args:
        probabilities: the large model, a function of the ids so far; returns what follows each of
            them, shape (n, vocab_size).
        draft_probabilities: the draft model, a function of the ids so far; returns what follows
            the last, shape (vocab_size,).
        bos_id: the id that the text starts with.
        eos_id: the id that ends it.
        max_len: most tokens of the result, `<bos>` and `<eos>` included.
        guesses: most guesses a round.
        uniform: gives a random number in [0, 1) when called; by default one with seed 0.

    Raises:
        ValueError: guesses is under 1.

    Source: as `accept_and_residual`.
    Differs: one text, no cache. A cache of the large model forgets what was refused.
    """
    if guesses < 1:
        raise ValueError(f"guesses is {guesses}, but a round needs at least 1 guess.")
    uniform = uniform or random.Random(0).random
    ids, passes, guessed, accepted = [bos_id], 0, 0, 0
    while len(ids) < max_len and (len(ids) == 1 or ids[-1] != eos_id):
        new, q = _guess(
            draft_probabilities, ids, eos_id, min(guesses, max_len - 1 - len(ids)), uniform
        )
        p = probabilities(ids + new)[len(ids) - 1 :]  # (new + 1, vocab_size): one pass
        kept = _judge(new, p, q, uniform)
        if kept == new and (not new or new[-1] != eos_id):
            kept = [*new, draw(p[-1], uniform())]  # the pass also says what follows them
        ids, passes, guessed = ids + kept, passes + 1, guessed + len(new)
        accepted += sum(token == guess for token, guess in zip(kept, new, strict=False))
    return Speculation(ids, passes, guessed, accepted)


def _guess(
    draft_probabilities: Callable[[list[int]], Tensor],
    ids: list[int],
    eos_id: int | None,
    most: int,
    uniform: Callable[[], float],
) -> tuple[list[int], list[Tensor]]:
    """Return guesses of what follows ids, and the distribution that each was drawn from."""
    new, q = [], []
    while len(new) < most and (not new or new[-1] != eos_id):
        q.append(draft_probabilities(ids + new))
        new.append(draw(q[-1], uniform()))
    return new, q


def _judge(new: list[int], p: Tensor, q: list[Tensor], uniform: Callable[[], float]) -> list[int]:
    """Return the guesses up to the first refusal, which a token of the residual replaces."""
    for i, guess in enumerate(new):
        accept, residual = accept_and_residual(p[i], q[i])
        if uniform() >= accept[guess]:
            return [*new[:i], draw(residual, uniform())]
    return new
