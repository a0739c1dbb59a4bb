"""Several attempts: the estimate against all ways to pick, and what most of them say."""

import pytest

from transformer_lesson.generation.attempts import majority, pass_at_k


@pytest.mark.parametrize("wrong", [(4, 5, 1), (4, 1, 5), (4, 1, 0), (4, -1, 1)])
def test_more_than_there_are_cannot_be_picked(wrong):
    with pytest.raises(ValueError, match=f"n = {wrong[0]}, c = {wrong[1]}, k = {wrong[2]}: "):
        pass_at_k(*wrong)


def test_the_majority_is_the_earliest_of_those_said_most():
    assert majority(["b", "a", "c", "a", "b"]) == "b"
