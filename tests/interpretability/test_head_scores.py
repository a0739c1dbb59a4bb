"""Scores of heads: patterns that were made by hand get the score that they deserve."""

import pytest
import torch

from transformer_lesson.interpretability import head_scores


def test_who_looks_one_back_scores_1_and_who_looks_at_itself_0():
    weights = torch.eye(7).expand(2, 1, 7, 7)
    assert head_scores.previous_token_score(weights.roll(-1, dims=-1)).tolist() == [1]
    assert head_scores.previous_token_score(weights).tolist() == [0]


def test_the_induction_score_is_the_mean_weight_on_what_followed_for_each_head():
    weights = torch.rand(2, 3, 11, 11).softmax(-1)
    score = head_scores.induction_score(weights, 7)
    for head in range(3):
        cells = [weights[b, head, i, i - 6] for b in range(2) for i in range(7, 11)]
        torch.testing.assert_close(score[head], torch.stack(cells).mean())


def test_a_period_that_is_not_there_and_cross_attention_are_refused():
    for period in (-1, 0, 7, 8):
        with pytest.raises(ValueError, match=r"from 1 to 6"):
            head_scores.induction_score(torch.ones(1, 1, 7, 7), period)
    with pytest.raises(ValueError, match="3 queries and 5 keys"):
        head_scores.previous_token_score(torch.ones(1, 1, 3, 5))


def test_a_window_has_at_least_one_token():
    with pytest.raises(ValueError, match="window is 0"):
        head_scores.cut_off(torch.ones(1, 2, 2), 0)
