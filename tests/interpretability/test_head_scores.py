"""Scores of heads: patterns that were made by hand get the score that they deserve."""

import pytest
import torch

from transformer_lesson.interpretability.head_scores import (
    cut_off,
    induction_score,
    previous_token_score,
)


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
