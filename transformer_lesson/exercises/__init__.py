"""Exercises that are checked, hints and solutions that unfold, predictions before a reveal.

`check(name, answer)`, `hint(name)`, `solution(name)` and `predict(name)` are what a lesson calls;
`ways_to_fail(name)` is for who has passed, `progress()` draws what has been done.
"""

from transformer_lesson.exercises.checks import check
from transformer_lesson.exercises.folds import hint, solution
from transformer_lesson.exercises.progress_view import progress
from transformer_lesson.exercises.question_bank import find_question
from transformer_lesson.exercises.reports import Report
from transformer_lesson.exercises.ways import ways_to_fail

__all__ = ["Report", "check", "hint", "predict", "progress", "solution", "ways_to_fail"]


def predict(name: str):
    """Return a widget that asks a question, such as "03.softmax_axis", before its reveal.

    Raises:
        ValueError: there is no question of that name.
    """
    question = find_question(name)
    from transformer_lesson.exercises.predictions import Prediction

    return Prediction(question)
