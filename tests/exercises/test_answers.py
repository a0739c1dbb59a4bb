"""Right answers by other authors pass; of wrong ones see `test_help.py`."""

import pytest

from tests.course.play import answers as written
from tests.exercises.answers import answers
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.catalog import EXERCISES

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
