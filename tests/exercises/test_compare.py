"""Values are compared by what they are, not by how they were made."""

import math

import numpy as np
import pytest
import torch

from transformer_lesson.exercises.engine.compare import difference, same, whole_as_float

NAN = float("nan")


ONES, NAN_BESIDE = torch.ones(2), torch.tensor([1.0, NAN])
SAME = [
    *((ONES, ONES.double()), (NAN_BESIDE, NAN_BESIDE.clone()), ((ONES, 3), [ONES, 3])),
    *((1.0, 1.0 + 1e-9), (NAN, NAN), (None, None), (ValueError, ValueError)),
    *((np.ones(3), np.ones(3)), ({"a": 1}, {"a": 1}), (len, len)),
]
OTHERS = [
    *((ONES, torch.ones(3)), (ONES, ONES.long()), (ONES, ONES.bool()), (ONES, NAN_BESIDE)),
    *((ONES, torch.tensor([1.0, 1.1])), (ONES, (ONES,)), (ONES, np.ones(2))),
    *((np.ones(3), np.ones(2)), ([1, 2], [1, 2, 3]), (1, True), (1, 1.0), (0, None)),
    *((ValueError, KeyError), (math.inf, NAN), ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": ONES})),
    *((len, print), (object(), object())),
]


@pytest.mark.parametrize(("pairs", "expected"), [(SAME, True), (OTHERS, False)])
def test_values_are_the_same_by_what_they_are(pairs, expected):
    assert [pair for pair in pairs if same(*pair) != expected] == []


def test_without_tolerance_even_rounding_counts():
    for one in (torch.ones(2), 1.0, [1.0], (torch.ones(2),)):
        assert same(one, one, relative=0.0, absolute=0.0)
    for one, other in ((torch.ones(2), torch.ones(2) + 1e-6), ([1.0], [1.0 + 1e-9])):
        assert same(one, other)
        assert not same(one, other, relative=0.0, absolute=0.0)


@pytest.mark.parametrize(
    ("axes", "place"), [("query key", "batch 1, head 2, query 0, key 3"), ("key", "batch 0, key 1")]
)
def test_where_results_differ_most_is_said_by_the_names_of_the_axes(axes, place):
    index = tuple(int(word.split()[1]) for word in place.split(", "))
    expected = torch.zeros((2, 3, 5, 7) if len(index) == 4 else (2, 3))
    yours = expected.clone()
    yours[index] = 0.5
    said = difference(expected, yours, axes, {"batch": 2, "head": 3, "d_head": 11})
    assert said == f"Largest difference 0.5 at {place}."


def test_a_whole_number_stands_for_a_float_but_for_no_count_and_a_truth_for_neither():
    assert repr(whole_as_float((1.0, [2.0, 3.0], 4, 5.0), (1, [2, 3], 4, True))) == (
        "[1.0, [2.0, 3.0], 4, True]"
    )
