"""Tables of characters: probabilities sum to 1, and what is new falls back on shorter contexts."""

import math

import pytest

from transformer_lesson.lessons.lesson_10.counting import CharacterTables, bits, pieces_of

TEXT = "abracadabra"
ALL = "abcdrx"  # x never occurs
TABLES = CharacterTables(TEXT, 3, len(ALL))


@pytest.mark.parametrize("context", ["", "a", "br", "ra", "xx", "bx", "xa"])
@pytest.mark.parametrize("probability", [TABLES.counted, TABLES.mixed])
def test_the_probabilities_after_any_context_sum_to_1(probability, context):
    assert math.isclose(sum(probability(context + c) for c in ALL), 1)


def test_a_new_context_leaves_it_to_the_shorter_one():
    assert TABLES.mixed("xab") == TABLES.mixed("ab") != TABLES.mixed("cab")
    assert math.isclose(TABLES.counted("xxa"), 1 / len(ALL))


def test_witten_and_bell_by_hand():
    one = (5 + 5 / 6) / (11 + 5)  # a: 5 of 11 characters, and 5 different ones occur
    assert math.isclose(TABLES.mixed("a"), one)
    assert math.isclose(TABLES.mixed("ra"), (2 + 1 * one) / (2 + 1))  # after r comes a, twice


def test_what_a_text_costs_and_how_many_of_its_contexts_are_new():
    assert pieces_of("aba", 2) == {"ab": 1, "ba": 1}
    assert math.isclose(bits(lambda piece: 1 / 4, TEXT, 3), 2)
    assert TABLES.share_new("abx", 1) == 1 / 3 and TABLES.share_new("abx", 0) == 0
