"""Speculative decoding writes what the large model would have written, with the same chances."""

import random
from collections import Counter

import pytest
import torch

from transformer_lesson.generation import greedy_decode, speculative_decode

BOS, EOS, A, B = 0, 1, 2, 3

LARGE = torch.tensor([[0, 0.25, 0.5, 0.25], [0, 1, 0, 0], [0, 0.5, 0, 0.5], [0, 0.25, 0.75, 0]])
DRAFT = torch.tensor([[0, 0.5, 0.25, 0.25], [0, 0, 1, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0, 1.0]])
"""What follows each of four tokens; the last row of DRAFT is sure, and wrong."""


def rows(table):
    return lambda ids: table[torch.tensor(ids)]


def last(table):
    return lambda ids: table[ids[-1]]


def chances(max_len: int) -> dict[tuple[int, ...], float]:
    """Return every text that LARGE may write, with its probability."""
    texts, open_texts = {}, {(BOS,): 1.0}
    while open_texts:
        ids, chance = open_texts.popitem()
        if len(ids) == max_len or ids[-1] == EOS:
            texts[ids] = chance
            continue
        for token, p in enumerate(LARGE[ids[-1]].tolist()):
            if p:
                open_texts[*ids, token] = chance * p
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("guesses", [1, 5])
def test_texts_come_as_often_as_the_large_model_writes_them(guesses):
    """4,000 texts with fixed seeds are within the 99.9 % point of chi-square."""
    n, uniform, model, draft = 4000, random.Random(guesses).random, rows(LARGE), last(DRAFT)
    written = [
        speculative_decode(model, draft, BOS, EOS, 5, guesses, uniform).ids for _ in range(n)
    ]
    counts, expected = Counter(map(tuple, written)), chances(5)
    assert counts.keys() <= expected.keys()
    distance = sum((counts[ids] - n * p) ** 2 / (n * p) for ids, p in expected.items())
    degrees = len(expected) - 1
    assert distance < degrees + 3.1 * (2 * degrees) ** 0.5 + 7


def one_hot(table):
    return torch.nn.functional.one_hot(table.argmax(dim=-1), 4).float()


@pytest.mark.parametrize("max_len", [1, 2, 3, 8])
@pytest.mark.parametrize("guesses", [1, 3, 7])
def test_greedy_stays_greedy(max_len, guesses):
    greedy = greedy_decode(lambda ids: LARGE[ids[-1]], BOS, EOS, max_len)
    model, draft = rows(one_hot(LARGE)), last(one_hot(DRAFT))
    made = speculative_decode(model, draft, BOS, EOS, max_len, guesses)
    assert made.ids == greedy
    assert made.accepted <= made.guessed and made.passes <= len(greedy)


def test_a_perfect_draft_saves_passes_and_a_useless_one_costs_none():
    cycle = torch.eye(4).roll(1, dims=1)  # each token is followed by the next one
    never = torch.eye(4)  # each token is followed by itself
    perfect = speculative_decode(rows(cycle), last(cycle), 0, None, 11, guesses=4)
    assert (perfect.passes, perfect.guessed, perfect.accepted) == (2, 8, 8)
    useless = speculative_decode(rows(cycle), last(never), 0, None, 11, guesses=4)
    assert (useless.passes, useless.accepted) == (10, 0)
    assert useless.ids == perfect.ids
    with pytest.raises(ValueError, match="guesses is 0"):
        speculative_decode(rows(cycle), last(never), 0, None, 11, guesses=0)
