"""Masks are boolean, True = may attend, and combine with &."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lesson.model.masks import causal_mask, padding_mask, sink_mask, window_mask


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 12))
def test_what_came_before_is_seen_in_a_window_the_last_of_it_and_first_tokens(n, window, sinks):
    masks = causal_mask(n), window_mask(n, window), sink_mask(n, window, sinks)
    assert all(mask.shape == (1, 1, n, n) and mask.dtype == torch.bool for mask in masks)
    for query in range(n):
        for key in range(n):
            before, near = key <= query, query - key < window
            seen = [mask[0, 0, query, key].item() for mask in masks]
            assert seen == [before, before and near, before and (near or key < sinks)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: causal_mask(0), "n is 0, but a sequence has at least 1 token"),
        (lambda: window_mask(3, 0), "window is 0"),
        (lambda: sink_mask(3, 2, -1), "sinks is -1, but the fewest is 0"),
        (lambda: sink_mask(3, 0, 1), "window is 0"),
        (
            lambda: padding_mask(torch.ones(3), 0),
            r"\(3,\).*must be \(batch, key\).*use ids\[None\]",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_makes_no_mask_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
