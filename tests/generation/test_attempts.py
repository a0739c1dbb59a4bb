"""Several attempts: the estimate against all ways to pick, and what most of them say."""

from itertools import combinations

import pytest

from transformer_lesson.generation.attempts import majority, pass_at_k


@pytest.mark.parametrize("wrong", [(4, 5, 1), (4, 1, 5), (4, 1, 0), (4, -1, 1)])
def test_more_than_there_are_cannot_be_picked(wrong):
    with pytest.raises(ValueError, match=f"n = {wrong[0]}, c = {wrong[1]}, k = {wrong[2]}: "):
        pass_at_k(*wrong)


def test_pass_at_k_is_the_share_of_all_picks_that_have_a_right_one():
    for n in range(1, 8):
        for c, k in ((c, k) for c in range(n + 1) for k in range(1, n + 1)):
            picks = list(combinations([True] * c + [False] * (n - c), k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, picks)) / len(picks))


def test_the_majority_is_the_earliest_of_those_said_most():
    assert majority(["b", "a", "c", "a", "b"]) == "b"
