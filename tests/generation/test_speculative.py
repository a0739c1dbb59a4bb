"""Speculative decoding writes what the large model would have written, with the same chances."""

import itertools
import random

import pytest
import torch

from tests.generation.writers import reading
from transformer_lesson.generation import accept_and_residual, greedy_decode, speculative_decode
from transformer_lesson.generation.speculative import draw

BOS, EOS, A, B = 0, 1, 2, 3

LARGE = torch.tensor([[0, 0.25, 0.5, 0.25], [0, 1, 0, 0], [0, 0.5, 0, 0.5], [0, 0.25, 0.75, 0]])
DRAFT = torch.tensor([[0, 0.5, 0.25, 0.25], [0, 0, 1, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0, 1.0]])
"""What follows each of four tokens; the last row of DRAFT is sure, and wrong."""


def rows(table):
    return lambda ids: table[torch.tensor(ids)]


def last(table):
    return lambda ids: table[ids[-1]]


def distributions(n: int):
    """Pairs of distributions over four tokens, in eighths: every kind of more, less and none."""
    eighths = [c for c in itertools.product(range(9), repeat=4) if sum(c) == 8]
    return torch.tensor(random.Random(1).choices(eighths, k=2 * n)).div(8).view(2, n, 4)


def test_the_rule_leaves_the_distribution_as_it_is():
    p, q = distributions(500)
    accept, residual = accept_and_residual(p, q)
    as_guess = q * accept
    refused = 1 - as_guess.sum(dim=-1, keepdim=True)
    assert torch.allclose(as_guess + refused * residual, p, atol=1e-6)
    assert torch.allclose(residual.sum(dim=-1), torch.ones(500))
    assert accept.min() >= 0 and accept.max() <= 1
    accept, residual = accept_and_residual(p, p)  # equal models refuse nothing
    assert torch.equal(accept, torch.ones(500, 4)) and torch.equal(residual, p)


def test_what_is_written_follows_the_large_models_chances():
    """Each of 64 equally likely triples of random numbers: guess, verdict, replacement."""
    quarters = [(k + 0.5) / 4 for k in range(4)]
    written = []
    for triple in itertools.product(quarters, repeat=3):
        numbers = itertools.chain(triple, itertools.repeat(0.5))
        uniform = numbers.__next__
        written.append(speculative_decode(rows(LARGE), last(DRAFT), BOS, EOS, 3, 1, uniform).ids[1])
    assert torch.bincount(torch.tensor(written)).tolist() == (64 * LARGE[BOS]).tolist()


def one_hot(table):
    return torch.nn.functional.one_hot(table.argmax(dim=-1), 4).float()


@pytest.mark.parametrize("max_len", [1, 2, 3, 8])
@pytest.mark.parametrize("guesses", [1, 3, 7])
def test_greedy_stays_greedy(max_len, guesses):
    read = reading(lambda ids: LARGE[ids[-1]])
    greedy = [BOS, *greedy_decode(read, [BOS], EOS, max_len - 1)]
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
    ends = torch.eye(4)[[EOS] * 4]
    assert speculative_decode(rows(ends), last(ends), BOS, EOS, 9).ids == [BOS, EOS]
    with pytest.raises(ValueError, match="guesses is 0"):
        speculative_decode(rows(cycle), last(never), 0, None, 11, guesses=0)


def test_a_token_is_drawn_where_the_running_sum_passes_the_number():
    weights = torch.tensor([0.0, 1.0, 0.0, 3.0])
    assert [draw(weights, uniform) for uniform in (0.0, 0.24, 0.25, 0.999)] == [1, 1, 3, 3]
