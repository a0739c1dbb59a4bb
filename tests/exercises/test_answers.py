"""Right answers by other authors pass, wrong ones fail."""

import pytest

from tests.course.play import answers as written
from tests.exercises.answers import PASSES, answers
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import run_checks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]


def anew(answer):
    """An answer that is not taken for the start of a bug hunt."""
    return lambda *inputs: answer.function(*inputs)


def test_there_are_right_answers_to_every_exercise():
    assert {one.exercise for one in answers() if one.kind == "right"} | {*written()} == {*EXERCISES}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    given = [one for one in answers() if one.exercise == name and one.kind == "right"]
    failed = [one for one in given if check(name, anew(one)).status != "passed"]
    assert [one.function.__code__.co_firstlineno for one in failed] == []


def test_wrong_answers_fail():
    """But those that no draw reaches yet, and say so. One of each exercise is explained, too."""
    given = [one for one in answers() if one.kind != "right"]
    explained = {one.exercise: one for one in reversed(given)}.values()
    for one in given:
        passes = any(clause.startswith(PASSES) for clause in one.what)
        failure = run_checks(EXERCISES[one.exercise], anew(one))
        assert (failure is None) == passes, one.what
        if one in explained:
            status = check(one.exercise, anew(one)).status
            assert status == ("passed" if passes else "failed"), one.what
