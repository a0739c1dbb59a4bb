"""Losses of answers where they could break; what they compute is tried in lesson 16's exercises."""

import math

import torch

from transformer_lesson.training.preferences import dpo_loss, grpo_loss, sequence_log_prob


def test_a_model_that_cannot_write_padding_has_finite_sums():
    logits = torch.zeros(2, 3, 5)
    logits[..., 0] = -math.inf
    labels = torch.tensor([[1, 2, 0], [0, 0, 0]])
    torch.testing.assert_close(
        sequence_log_prob(logits, labels, pad_id=0), torch.tensor([-2 * math.log(4), 0.0])
    )


def test_dpo_stays_finite():
    same = torch.tensor([-3.0, -7.0])
    assert dpo_loss(same - 4000, same, same, same, beta=0.5) == 2000


def test_a_group_of_equal_rewards_moves_no_weight():
    for size in (1, 3, 8):  # equal but for rounding
        rewards = torch.full((1, size), 0.1)
        assert grpo_loss(-torch.ones(1, size, 2), torch.ones(1, size, 2).bool(), rewards) == 0
