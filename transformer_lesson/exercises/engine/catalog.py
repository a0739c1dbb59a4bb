"""All exercises by name, and by lesson."""

import difflib
from importlib import import_module

from transformer_lesson import course
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.engine.specification import Exercise


def _exercises(lesson: str) -> list[Exercise]:
    """Return a lesson's exercises in the order they are defined."""
    module = f"transformer_lesson.lessons.lesson_{lesson}.exercises"
    return [value for value in vars(import_module(module)).values() if isinstance(value, Exercise)]


_OF_LESSON = {number: _exercises(number) for number in course.LESSONS}
EXERCISES = {exercise.name: exercise for exercises in _OF_LESSON.values() for exercise in exercises}
LESSON_OF = {
    exercise.name: number for number, exercises in _OF_LESSON.items() for exercise in exercises
}
"""The lesson of each exercise."""
_DEEPER = [name for notebook in course.DEEPER.values() for name in notebook.exercises]
LESSONS = {
    number: (
        course.LESSONS[number].title,
        *(exercise.name for exercise in exercises if exercise.name not in _DEEPER),
    )
    for number, exercises in _OF_LESSON.items()
}
"""Each lesson's title and the names of the exercises in its notebook."""
DEEPER = {name: (notebook.title, *notebook.exercises) for name, notebook in course.DEEPER.items()}
"""The same for the notebooks behind the lessons."""


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(str(name), EXERCISES)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Its cell names it, in `check(...)`."
    raise Misuse(f"There is no exercise {name!r}. {hint}")
