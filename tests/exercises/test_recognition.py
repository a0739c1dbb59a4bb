"""A wrong answer is called by the name of the mistake that gives the same."""

import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.recognition import recognize
from transformer_lesson.exercises.specification import Mistake


def test_a_known_mistake_is_named_before_the_example():
    report = check("attention_scores", lambda Q, K: torch.einsum("bhqd,bhkd->bhqk", Q, K))
    assert report.mistake and "scale" in report.mistake
    first, rest = report.message.split("\n", 1)
    assert first.startswith(f"This is what {report.mistake} gives. ")
    assert "Smallest failing example" in rest


def test_an_unknown_mistake_has_no_name():
    report = check("attention_scores", lambda Q, K: Q @ K.mT / 7.3)
    assert report.status == "failed" and report.mistake is None
    assert not report.message.startswith("This is what")


def test_two_functions_returned_are_no_more_alike_than_two_numbers(monkeypatch):
    mistake = Mistake("a function", "It is not called.", lambda *inputs: len)
    monkeypatch.setitem(MISTAKES, "attention_scores", (mistake,))
    exercise = EXERCISES["attention_scores"]
    assert recognize(exercise, lambda Q, K: len) is mistake
    assert recognize(exercise, lambda Q, K: print) is None
