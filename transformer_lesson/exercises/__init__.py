"""Exercises that are checked, hints and solutions that unfold, predictions before a reveal.

`check(name, answer)`, `hint(name)`, `solution(name)` and `predict(name)` are what a lesson calls;
`ways_to_fail(name)` is for who has passed, `progress()` draws what has been done. `engine` does
this for every lesson; beside it stand the lessons' own exercises, words and questions.
"""

from transformer_lesson.exercises.engine.checks import check
from transformer_lesson.exercises.engine.folds import hint, solution, ways_to_fail
from transformer_lesson.exercises.engine.progress_view import progress
from transformer_lesson.exercises.engine.question_bank import find_question
from transformer_lesson.exercises.engine.reports import Report

__all__ = ["Report", "check", "hint", "predict", "progress", "solution", "ways_to_fail"]


def predict(name: str):
    """Return a widget that asks a question, such as "03.softmax_axis", before its reveal.

    Raises:
        ValueError: there is no question of that name.
    """
    question = find_question(name)
    from transformer_lesson.exercises.engine.predictions import Prediction

    return Prediction(question)
