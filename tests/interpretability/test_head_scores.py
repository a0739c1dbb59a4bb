"""Scores of heads: patterns that were made by hand get the score that they deserve."""

import pytest
import torch

from transformer_lesson.interpretability.head_scores import (
    cut_off,
    induction_score,
    previous_token_score,
)


def looking(back: int, n: int) -> torch.Tensor:
    """Weights (1, 1, n, n) of a head that looks `back` tokens back, or at the first token."""
    keys = (torch.arange(n) - back).clamp(min=0)
    return torch.nn.functional.one_hot(keys, n).float()[None, None]


def test_each_pattern_gets_its_own_score_and_no_other():
    n, period = 13, 5
    for back, previous, induced in ((1, 1, 0), (period, 0, 0), (period - 1, 0, 1)):
        weights = looking(back, n)
        assert induction_score(weights, period).tolist() == [induced]
        weights[0, 0, :period] = 1.0  # queries that have seen no token twice do not count
        assert induction_score(weights, period).tolist() == [induced]
        assert (previous_token_score(looking(back, n)) == 1).item() == previous
    weights = torch.ones(10, 10).tril()
    weights = (weights / weights.sum(-1, keepdim=True))[None, None]
    expected = sum(1 / (i + 1) for i in range(5, 10)) / 5
    assert float(induction_score(weights, 5)) == pytest.approx(expected)


def test_heads_stay_apart_and_sentences_are_averaged():
    weights = torch.rand(2, 3, 11, 11).softmax(-1)
    score = induction_score(weights, 7)
    for head in range(3):
        cells = [weights[b, head, i, i - 6] for b in range(2) for i in range(7, 11)]
        torch.testing.assert_close(score[head], torch.stack(cells).mean())


def test_a_period_that_is_not_there_and_cross_attention_are_refused():
    for period in (-1, 0, 7, 8):
        with pytest.raises(ValueError, match=r"from 1 to 6"):
            induction_score(torch.ones(1, 1, 7, 7), period)
    with pytest.raises(ValueError, match="3 queries and 5 keys"):
        previous_token_score(torch.ones(1, 1, 3, 5))


def test_a_window_takes_from_each_token_what_later_queries_gave_it_as_a_share_of_all():
    weights = torch.rand(3, 7, 7).tril()
    weights /= weights.sum(-1, keepdim=True)
    for window in (1, 3, 9):
        lost = [sum(weights[:, i, j].sum() for i in range(j + window, 7)) / 21 for j in range(7)]
        torch.testing.assert_close(cut_off(weights, window), torch.tensor(lost))
    with pytest.raises(ValueError, match="window is 0"):
        cut_off(weights, 0)
