"""Right answers by other authors pass, wrong ones fail."""

import pytest

from tests.exercises.answers import PASSES, answers
from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import first_failure

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]


def anew(answer):
    """An answer that is not taken for the start of a bug hunt."""
    return lambda *inputs: answer.function(*inputs)


def test_there_are_answers_to_every_exercise():
    kinds = {(answer.exercise, answer.kind == "right") for answer in answers()}
    assert kinds == {(name, right) for name in EXERCISES for right in (True, False)}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    given = [one for one in answers() if one.exercise == name and one.kind == "right"]
    failed = [one for one in given if check(name, anew(one)).status != "passed"]
    assert [one.function.__code__.co_firstlineno for one in failed] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_wrong_answers_fail(name):
    """But those that no draw reaches yet, and say so. One of each kind is explained, too."""
    given = [one for one in answers() if one.exercise == name and one.kind != "right"]
    explained = {one.kind: one for one in given}.values()
    for one in given:
        passes = any(clause.startswith(PASSES) for clause in one.what)
        assert (first_failure(EXERCISES[name], anew(one)) is None) == passes, one.what
        if one in explained:
            assert check(name, anew(one)).status == ("passed" if passes else "failed"), one.what
