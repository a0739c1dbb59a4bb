"""All exercises by name, and by lesson."""

import difflib
from importlib import import_module

from transformer_lesson import course
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.engine.specification import Exercise


def _exercises(lesson: str) -> list[Exercise]:
    """Return a lesson's exercises in the order they are defined."""
    module = f"transformer_lesson.lessons.lesson_{lesson}.exercises"
    return [one for one in vars(import_module(module)).values() if isinstance(one, Exercise)]


_OF_LESSON = {number: _exercises(number) for number in course.LESSONS}
EXERCISES = {one.name: one for exercises in _OF_LESSON.values() for one in exercises}
LESSON_OF = {one.name: number for number, exercises in _OF_LESSON.items() for one in exercises}
"""The lesson of each exercise."""
_DEEPER = [name for one in course.DEEPER.values() for name in one.exercises]
LESSONS = {
    number: (
        course.LESSONS[number].title,
        *(one.name for one in exercises if one.name not in _DEEPER),
    )
    for number, exercises in _OF_LESSON.items()
}
"""Each lesson's title and the names of the exercises in its notebook."""
DEEPER = {name: (one.title, *one.exercises) for name, one in course.DEEPER.items()}
"""The same for the notebooks behind the lessons."""


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(str(name), EXERCISES) or sorted(EXERCISES)
    raise Misuse(f"There is no exercise {name!r}. Did you mean {' or '.join(close)}?")
