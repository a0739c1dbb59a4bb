"""The probe finds a leak where there is one, and only there."""

import pytest
import torch

from transformer_lesson.interpretability.causality import changed_positions, leaks_future, who_told

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def per_token(ids):
    return ids.float()[..., None]  # (batch, n, 1)


def running_sum(ids):
    return per_token(ids).cumsum(1)


def total(ids):
    return per_token(ids).sum(1, keepdim=True).expand(-1, ids.size(1), -1)


def next_token(ids):
    return per_token(ids.roll(-1, 1))


def last_token_in_one_sentence(ids):
    second = ids[1:] + ids[1:, -1:]
    return per_token(torch.cat([ids[:1], second]))


def ruled_out(ids):
    return torch.cat([running_sum(ids), per_token(ids) * -torch.inf], dim=-1)  # a token never said


def broken(ids):
    return per_token(ids).masked_fill(torch.arange(5)[:, None] == 2, torch.nan)


@pytest.mark.parametrize(
    ("model", "moved", "leaks"),
    [
        (per_token, [0, 0, 1, 0, 0], False),
        (running_sum, [0, 0, 1, 1, 1], False),
        (total, [1, 1, 1, 1, 1], True),
        (next_token, [0, 1, 0, 0, 0], True),
        (last_token_in_one_sentence, [0, 0, 1, 0, 0], True),
        (ruled_out, [0, 0, 0, 1, 1], False),  # at 2 it is no number
    ],
)
def test_the_outputs_that_move_are_named_and_earlier_ones_are_a_leak(model, moved, leaks):
    before = IDS.clone()
    assert (changed_positions(model, IDS, 2) > 0).int().tolist() == moved
    assert leaks_future(model, IDS) is leaks and torch.equal(IDS, before)


def test_the_largest_change_over_batch_and_features_is_given_also_where_the_token_was_0():
    def model(ids):
        return torch.stack([ids, -2 * ids], dim=-1).float()

    assert changed_positions(model, IDS, 0, new_id=10).tolist() == [14, 0, 0, 0, 0]  # 2 * (10 - 3)
    for token, change in ((0, 2), (4, 8)):
        assert changed_positions(model, torch.tensor([[token] * 2]), 1).tolist() == [0, change]


def test_what_cannot_be_compared_or_is_not_there_is_refused():
    with pytest.raises(ValueError, match="output at position 2 is nan, so nobody can see"):
        leaks_future(broken, IDS)
    for position in (-1, 5):
        message = f"position is {position}, but the sequence has positions 0 to 4"
        with pytest.raises(ValueError, match=message):
            changed_positions(per_token, IDS, position)


def test_news_is_the_length_of_the_change_of_what_a_word_gets_from_another():
    weights, new_weights = torch.rand(2, 3, 5, 5), torch.rand(2, 3, 5, 5)
    values, new_values = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7)
    told = who_told(weights, values, new_weights, new_values)
    b, i, j = 1, 2, 4
    change = new_weights[b, :, i, j, None] * new_values[b, :, j]
    change = change - weights[b, :, i, j, None] * values[b, :, j]  # (head, d_head)
    torch.testing.assert_close(told[b, i, j], change.flatten().norm())
    assert not who_told(weights, values, weights, values).any()
    torch.testing.assert_close(told, who_told(new_weights, new_values, weights, values))
