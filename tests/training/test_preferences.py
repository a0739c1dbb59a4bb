"""Losses of answers where they could break; what they compute is tried in lesson 16's exercises."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lesson.training.preferences import dpo_loss, grpo_loss, sequence_log_prob


def test_the_log_probability_is_minus_the_summed_cross_entropy_and_padding_may_be_impossible():
    logits = torch.randn(3, 5, 7)
    logits[..., 0] = -math.inf  # a model that never writes <pad>
    labels = torch.randint(1, 7, (3, 5))
    labels[0, 3:] = labels[1] = 0
    found = sequence_log_prob(logits, labels, pad_id=0)
    for row, text in enumerate(labels):
        real = text != 0
        wanted = -F.cross_entropy(logits[row][real], text[real], reduction="sum")
        assert abs(found[row] - wanted) < 1e-5
    assert found[1] == 0


def test_dpo_stays_finite_and_begins_at_the_logarithm_of_2():
    same, mask = torch.full((3, 2, 4), -2.0), torch.ones(3, 2, 4).bool()
    assert dpo_loss(same, same, mask, beta=0.5) == torch.tensor(2.0).log()
    worse = same.clone()
    worse[:, 0] -= 1000
    assert dpo_loss(worse, same, mask, beta=0.5) == 2000
    assert dpo_loss(same, same - torch.tensor([[0.5], [-0.25]]), mask, beta=0.1).item() == (
        pytest.approx(0.554, abs=5e-4)  # gains of 2 and -1
    )


def test_a_group_of_equal_rewards_moves_no_weight():
    for size in (1, 3, 8):  # equal but for rounding
        rewards = torch.full((1, size), 0.1)
        assert grpo_loss(-torch.ones(1, size, 2), torch.ones(1, size, 2).bool(), rewards) == 0
