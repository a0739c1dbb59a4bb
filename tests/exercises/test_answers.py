"""Right answers by other authors pass, wrong ones fail."""

import pytest

from tests.exercises.answers import PASSES, answers
from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES

pytestmark = pytest.mark.slow


def status(answer) -> str:
    report = check(answer.exercise, lambda *inputs: answer.function(*inputs))  # no start
    return f"{report.status}: {' | '.join(answer.what)}"


def test_there_are_answers_to_every_exercise():
    kinds = {(answer.exercise, answer.kind) for answer in answers()}
    assert {(name, kind) for name in EXERCISES for kind in ("right", "usual")} <= kinds


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    given = [one for one in answers() if one.exercise == name and one.kind == "right"]
    assert [
        one.function.__code__.co_firstlineno for one in given if status(one) != "passed: "
    ] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_wrong_answers_fail(name):
    """But those that no draw reaches yet, and say so."""
    given = [one for one in answers() if one.exercise == name and one.kind != "right"]
    for one in given:
        said = status(one)
        assert said.startswith("passed") == (PASSES in said), said
