"""The probe finds a leak where there is one, and only there."""

import pytest
import torch

from transformer_lesson.interpretability.causality import changed_positions, leaks_future

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def per_token(ids):
    return ids.float()[..., None]  # (batch, n, 1)


def running_sum(ids):
    return per_token(ids).cumsum(1)


def last_token_in_one_sentence(ids):
    return per_token(torch.cat([ids[:1], ids[1:] + ids[1:, -1:]]))


def ruled_out(ids):
    return torch.cat([running_sum(ids), per_token(ids) * -torch.inf], dim=-1)  # a token never said


@pytest.mark.parametrize(
    ("model", "moved", "leaks"),
    [
        (per_token, [0, 0, 1, 0, 0], False),
        (running_sum, [0, 0, 1, 1, 1], False),
        (lambda ids: per_token(ids.roll(-1, 1)), [0, 1, 0, 0, 0], True),
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
        leaks_future(lambda ids: per_token(ids).index_fill(1, torch.tensor(2), torch.nan), IDS)
    for position in (-1, 5):
        message = f"position is {position}, but the sequence has positions 0 to 4"
        with pytest.raises(ValueError, match=message):
            changed_positions(per_token, IDS, position)
