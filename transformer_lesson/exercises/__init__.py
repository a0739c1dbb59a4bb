"""Exercises that are checked, hints and solutions that unfold, predictions before a reveal.

`check(name, answer)`, `hint(name)`, `solution(name)` and `predict(name)` are what a lesson calls;
`ways_to_fail(name)` is for those who have passed, `progress()` shows what is done.
`inventory(when)` asks what you know before and after the course, and `gain()` draws both. Learners'
collected files use `in_dtype_of_inputs` where a result had another dtype. `engine` does the work
for every lesson; the exercises, words and questions are in each lesson's folder.
"""

from transformer_lesson.exercises.engine.checks import check
from transformer_lesson.exercises.engine.hints import hint, solution, ways_to_fail
from transformer_lesson.exercises.engine.precision import in_dtype_of_inputs
from transformer_lesson.exercises.engine.progress_view import progress
from transformer_lesson.exercises.engine.question_bank import find_question
from transformer_lesson.exercises.engine.reports import Report

__all__ = [
    "Report",
    "check",
    "gain",
    "hint",
    "in_dtype_of_inputs",
    "inventory",
    "predict",
    "progress",
    "solution",
    "ways_to_fail",
]


def predict(name: str):
    """Return a widget that asks a question, such as "03.two_nouns", before its reveal.

    Raises:
        ValueError: there is no question of that name.
    """
    question = find_question(name)
    from transformer_lesson.exercises.engine.predictions import Prediction

    return Prediction(question)


def inventory(when: str):
    """Return a widget that asks what you know: ten questions "before" the course, thirty "after".

    Raises:
        ValueError: `when` is neither.
    """
    from transformer_lesson.exercises.engine.inventory_view import Inventory

    return Inventory(when)


def gain():
    """Return a picture of what you knew before the course and what you know now, by topic."""
    from transformer_lesson.exercises.engine.gain import gain_figure

    return gain_figure()
