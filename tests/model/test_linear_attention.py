"""A state of fixed size gives what all keys and values give; latent vectors what heads would."""

import torch

from tests.parity import assert_equal
from transformer_lesson.model.linear_attention import (
    delta_step,
    linear_attention,
    linear_attention_step,
)


def test_step_by_step_is_all_at_once_and_the_sum_that_it_stands_for():
    Q, K, V = torch.randn(11, 3), torch.randn(11, 3), torch.randn(11, 5)
    whole, state = linear_attention(Q, K, V), torch.zeros(3, 5)
    for t in range(11):
        before = state.clone()
        output, new = linear_attention_step(state, Q[t], K[t], V[t])
        assert torch.equal(state, before)  # the old state stays as it is
        state = new
        assert_equal(output, sum((Q[t] @ K[s]) * V[s] for s in range(t + 1)))
        assert_equal(output, whole[t])


def test_the_delta_rule_reads_back_what_was_written_last():
    keys, values = torch.linalg.qr(torch.randn(5, 5))[0], torch.randn(2, 5, 7)
    added = replaced = torch.zeros(5, 7)
    for round_ in values:
        for k, v in zip(keys, round_, strict=True):
            _, added = linear_attention_step(added, k, k, v)
            read, replaced = delta_step(replaced, k, k, v)
            assert_equal(read, v)
    assert_equal(keys @ replaced, values[1])
    assert_equal(keys @ added, values.sum(0))
    half, _ = delta_step(torch.zeros(5, 7), k, k, v, beta=0.5)
    assert_equal(half, v / 2)
