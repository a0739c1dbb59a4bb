"""Several attempts: the estimate against all ways to pick, and what most of them say."""

from itertools import combinations

import pytest

from transformer_lesson.generation.attempts import majority, pass_at_k


@pytest.mark.parametrize("n, c, k", [(6, 2, 3), (6, 0, 2), (6, 5, 2), (5, 1, 5), (7, 3, 1)])
def test_it_is_the_share_of_all_ways_to_pick_k_that_have_a_right_one(n, c, k):
    picks = list(combinations([True] * c + [False] * (n - c), k))
    assert abs(pass_at_k(n, c, k) - sum(map(any, picks)) / len(picks)) < 1e-12


@pytest.mark.parametrize("wrong", [(4, 5, 1), (4, 1, 5), (4, 1, 0), (4, -1, 1)])
def test_more_than_there_are_cannot_be_picked(wrong):
    with pytest.raises(ValueError, match=f"n = {wrong[0]}, c = {wrong[1]}, k = {wrong[2]}: "):
        pass_at_k(*wrong)


def test_the_majority_is_the_earliest_of_those_said_most():
    assert majority(["b", "a", "c", "a", "b"]) == "b"
