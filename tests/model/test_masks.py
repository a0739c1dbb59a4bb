"""Masks are boolean, True = may attend, and combine with &."""

import pytest
import torch

from transformer_lesson.model.masks import causal_mask, padding_mask


@pytest.mark.parametrize("n", [1, 2, 5])
def test_causal_mask_lets_each_query_see_itself_and_what_came_before(n):
    mask = causal_mask(n)
    assert mask.shape == (1, 1, n, n) and mask.dtype == torch.bool
    for query in range(n):
        for key in range(n):
            assert mask[0, 0, query, key] == (key <= query)


def test_padding_mask_hides_the_padding_on_either_side():
    ids = torch.tensor([[5, 6, 0], [0, 7, 8], [0, 0, 0]])
    mask = padding_mask(ids, pad_id=0)
    assert mask.shape == (3, 1, 1, 3) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False, True, True], [False] * 3]


def test_padding_mask_takes_any_id_as_padding():
    assert padding_mask(torch.tensor([[9, 0, 4]]), pad_id=9)[0, 0, 0].tolist() == [
        False,
        True,
        True,
    ]


def test_masks_combine_with_and():
    ids = torch.tensor([[4, 5, 0], [0, 4, 5]])
    both = causal_mask(3) & padding_mask(ids, pad_id=0)
    assert both.shape == (2, 1, 3, 3)
    assert both[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert both[1, 0].int().tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize("n", [0, -3])
def test_causal_mask_refuses_an_empty_sequence(n):
    with pytest.raises(ValueError, match=f"n is {n}, but a sequence has at least 1 token"):
        causal_mask(n)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
@pytest.mark.usefixtures("unchecked")
def test_padding_mask_refuses_ids_that_are_not_a_batch(shape):
    with pytest.raises(ValueError, match=r"it must be \(batch, key\).*use ids\[None\]") as caught:
        padding_mask(torch.zeros(shape, dtype=torch.long), pad_id=0)
    assert str(tuple(shape)) in str(caught.value)
