"""Losses of answers that are better or worse than others: by hand, and where they could break."""

import math

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


def test_dpo_is_ln_2_at_first_falls_with_the_margin_alone_and_stays_finite():
    same = torch.tensor([-3.0, -7.0])
    assert abs(dpo_loss(same, same, same, same, beta=0.5) - math.log(2)) < 1e-6
    # gains of 1 and -1 nats: a margin of 2, times beta 0.5
    loss = dpo_loss(same + 1, same - 1, same, same, beta=0.5)
    assert abs(loss - math.log(1 + math.exp(-1))) < 1e-6
    assert dpo_loss(same - 4000, same, same, same, beta=0.5) == 2000
    # Both answers may get less likely, if the rejected one loses more: no gradient tells them.
    chosen, rejected = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    dpo_loss(chosen, rejected, torch.zeros(1), torch.zeros(1), beta=1.0).backward()
    assert chosen.grad == -rejected.grad == -0.5


def test_grpo_by_hand_and_a_group_of_equals_teaches_nothing():
    log_probs = -torch.arange(1.0, 13.0).view(2, 2, 3)
    mask = torch.tensor([[[1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 1, 1]]]).bool()
    rewards = torch.tensor([[1.0, 0.0], [0.3, 0.3]])
    log_probs.requires_grad_()
    loss = grpo_loss(log_probs, mask, rewards)
    # advantages 1 and -1; means of the tokens -1.5 and -5; four answers
    assert abs(loss - -(-1.5 + 5) / 4) < 1e-6
    loss.backward()
    assert not log_probs.grad[1].any() and not log_probs.grad[~mask].any()
    assert torch.allclose(log_probs.grad[0, 0], torch.tensor([-1 / 8, -1 / 8, 0]))
    for size in (1, 3, 8):  # equal but for rounding
        rewards = torch.full((1, size), 0.1)
        assert grpo_loss(-torch.ones(1, size, 2), torch.ones(1, size, 2).bool(), rewards) == 0
