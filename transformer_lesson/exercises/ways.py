"""All the ways to get an exercise wrong, each with the first thing that it gets wrong."""

from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.checks import first_failure, one_thread
from transformer_lesson.exercises.choosing import variant
from transformer_lesson.exercises.explanation import words
from transformer_lesson.exercises.folds import Fold


def ways_to_fail(name: str) -> Fold:
    """Return every wrong turn of an exercise: what it is, why it is wrong, its smallest example.

    For who has passed and wants to know what else there is.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = find(name)
    ways = []
    with one_thread():
        for turn, (what, why) in words(name).items():
            failure = first_failure(exercise, variant(exercise.marked, frozenset([turn])))
            ways.append(f"{len(ways) + 1}. **{what}.** {why}\n\n```text\n{failure}\n```")
    return Fold(f"{name}: {len(ways)} ways to fail", "\n\n".join(ways))
