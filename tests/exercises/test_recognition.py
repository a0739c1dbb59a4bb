"""A wrong answer is called by the name of the mistake that gives the same."""

import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.recognition import recognize
from transformer_lesson.exercises.specification import Mistake


def test_a_known_mistake_is_named_before_the_example():
    report = check("attention_scores", lambda Q, K: torch.einsum("...qd,...kd->...qk", Q, K))
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


def add_mistake(monkeypatch, name: str, version) -> Mistake:
    mistake = Mistake("a mistake of this test", "It is wrong.", version)
    monkeypatch.setitem(MISTAKES, name, (mistake,))
    return mistake


def test_a_mistake_that_also_spoils_its_input_is_another_one(monkeypatch):
    def wrong(Q, K):
        return Q @ K.mT

    def wrong_and_spoiling(Q, K):
        return Q.mul_(2) @ K.mT / 2

    mistake = add_mistake(monkeypatch, "attention_scores", wrong)
    exercise = EXERCISES["attention_scores"]
    assert recognize(exercise, wrong) is mistake
    assert recognize(exercise, wrong_and_spoiling) is None


def test_a_mistake_is_recognized_whose_results_share_one_buffer(monkeypatch):
    def wrong(Q, K):
        return (Q @ K.mT).clamp(-3, 3)

    buffer = torch.empty(10**5)

    def into_buffer(Q, K):
        result = wrong(Q, K)
        return buffer[: result.numel()].view(result.shape).copy_(result)

    mistake = add_mistake(monkeypatch, "attention_scores", wrong)
    assert recognize(EXERCISES["attention_scores"], into_buffer) is mistake
