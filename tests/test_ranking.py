"""Ties are broken by the rule, not by rounding."""

import math

import pytest
import torch

from transformer_lesson.ranking import first_largest, from_largest, is_largest

LAST_DIGIT = 1 + 2**-22


@pytest.mark.parametrize("larger", [0, 1, 2])
def test_of_equals_the_first_is_named_whichever_rounding_favors(larger):
    values = torch.tensor([0.5, 3.0, 3.0, 1.0, 3.0])
    values[[1, 2, 4][larger]] *= LAST_DIGIT
    assert first_largest(values) == 1
    assert first_largest(-values) == 0
    assert from_largest(values, 4) == [1, 2, 4, 3]
    assert is_largest(values).tolist() == [False, True, True, False, True]


def test_a_difference_that_can_be_seen_decides():
    assert first_largest(torch.tensor([1.0, 1.001])) == 1
    assert first_largest(torch.tensor([-1.0, -0.999])) == 1
    assert from_largest(torch.tensor([0.25, 0.26, 0.24]), 2) == [1, 0]


def test_infinities_zeros_and_more_than_there_are():
    values = torch.tensor([-math.inf, 0.0, math.inf, -1.0])
    assert from_largest(values, 9) == [2, 1, 3, 0]
    assert first_largest(torch.full((3,), -math.inf)) == 0
    assert first_largest(torch.zeros(3)) == 0
    table = torch.tensor([[[1, 2], [3, 3]], [[0, -1], [-2, -1]]])  # each row by itself
    assert first_largest(table).tolist() == [[1, 0], [0, 1]]
