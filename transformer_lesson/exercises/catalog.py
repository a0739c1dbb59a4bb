"""All exercises by name."""

import difflib

from transformer_lesson.exercises.attention_exercises import ATTENTION_EXERCISES
from transformer_lesson.exercises.block_exercises import BLOCK_EXERCISES
from transformer_lesson.exercises.generation_exercises import GENERATION_EXERCISES
from transformer_lesson.exercises.language_exercises import LANGUAGE_EXERCISES
from transformer_lesson.exercises.specification import Exercise
from transformer_lesson.exercises.text_exercises import TEXT_EXERCISES
from transformer_lesson.exercises.training_exercises import TRAINING_EXERCISES

EXERCISES = {
    exercise.name: exercise
    for exercise in TEXT_EXERCISES
    + ATTENTION_EXERCISES
    + BLOCK_EXERCISES
    + TRAINING_EXERCISES
    + GENERATION_EXERCISES
    + LANGUAGE_EXERCISES
}


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(str(name), EXERCISES) or sorted(EXERCISES)
    raise ValueError(f"There is no exercise {name!r}. Did you mean {' or '.join(close)}?")
