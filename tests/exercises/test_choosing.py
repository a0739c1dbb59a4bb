"""Marks in a function's source: each variant runs as written; published faults have theirs."""

import re
import tomllib

import pytest

from tests.stored_lessons import read
from transformer_lesson.exercises.engine import choosing
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import choose, fit_together, turns, variant

FACTOR = 10


def marked(x, offset):
    """What it computes."""
    x = choose(x, [x], negative=-x)
    x = x[0] if isinstance(x, list) else x
    x = choose(x + choose(offset, two=2), dropped=x, negative=x - 1)
    return rest(x)


def rest(x):
    return choose(x, scaled=x * FACTOR, broken=x / 0)


def given(*taken, x=3):
    return variant(marked, frozenset(taken))(x, 0)


@pytest.mark.parametrize(
    "result, taken",
    [(3, ""), (5, "two"), (3, "dropped"), (50, "scaled two"), (-4, "negative"), (30, "scaled")],
)
def test_only_the_option_that_was_taken_runs_and_a_name_at_two_marks_at_both(result, taken):
    assert given(*taken.split()) == result
    scaled, plain = variant(marked, frozenset(["scaled"])), variant(marked)
    assert (scaled(3, 0), plain(3, 0), scaled(3, 0)) == (30, 3, 30)  # they do not mix in `rest`
    with pytest.raises(ZeroDivisionError):
        given("broken")


def test_turns_stand_in_order_those_of_one_mark_exclude_each_other_and_right_ways_have_names():
    assert turns(marked) == ("negative", "dropped", "two", "scaled", "broken")
    assert not fit_together(marked, {"dropped", "negative"})
    assert not fit_together(marked, {"two", "scaled", "broken"})
    assert fit_together(marked, {"two", "scaled"})
    (way,) = choosing.right_ways(marked)
    assert way not in turns(marked)
    assert given(way) == 3 and given(way, "two") == 5


def test_a_turn_that_does_not_exist_is_refused_and_choose_never_called():
    with pytest.raises(ValueError, match="marked has no turn faster, slower"):
        variant(marked, frozenset(["two", "slower", "faster"]))
    with pytest.raises(RuntimeError, match="nothing calls it"):
        choose(1, wrong=2)


FAMILIES = tomllib.loads(read("transformer_lesson/exercises/families.toml"))
LINES = read("docs/faults.md").splitlines()
ROWS = [row.groups() for line in LINES if (row := re.match(r"\| ([A-Z]{3}): .* \| (.*) \|$", line))]


def test_every_published_fault_names_a_wrong_turn_or_says_why_not():
    assert len(ROWS) == len(dict(ROWS)) == 45
    for fault, where in ROWS:
        named = re.findall(r"`(\w+): (\w+)`", where)
        families = re.findall(r"\(families: (\w+)\)", where)
        assert named or families or "left out: " in where or "(form: " in where, fault
        assert {*families} <= FAMILIES.keys(), fault
        for exercise, turn in named:
            assert turn in turns(EXERCISES[exercise].marked), (fault, exercise, turn)
