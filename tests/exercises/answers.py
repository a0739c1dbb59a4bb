"""Answers by authors who had not seen what the checker knows, for measuring it.

In a file for each lesson, beside its tests: what learners might write, right and wrong. A wrong
answer says what is wrong in one clause, or in two if it makes two mistakes at once. `passes today:`
begins the clause of what no draw reaches yet.

Of 1,411 wrong ones, 1,289 gave on every draw what one or two of the package's wrong turns give,
which `test_diagnosis.py` makes anyway. Of the other 122 and later ones, one of each kind is here,
above all what only some draws or a rule tell from the right ones. A right answer is here if it says
why it is odd, or does something that no other right one does, the solution and those of
`tests/course/learners` included.
"""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PASSES = "passes today: "


class Answer(NamedTuple):
    """One answer.

    Args:
        exercise: its name.
        kind: "right"; a wrong one is "usual", "unusual" or a "pair" of mistakes.
        what: what is wrong, a clause for each mistake.
        function: what was written.
    """

    exercise: str
    kind: str
    what: tuple[str, ...]
    function: Callable


COLLECTED: list[Answer] = []


def wrong(exercise: str, kind: str, *what: str) -> Callable:
    """Collect a wrong answer."""

    def collect(function: Callable) -> Callable:
        COLLECTED.append(Answer(exercise, kind, what, function))
        return function

    return collect


def right(exercise: str) -> Callable:
    """Collect a right answer."""
    return wrong(exercise, "right")


@cache
def answers() -> list[Answer]:
    """Return all answers."""
    for path in sorted(Path(__file__).parents[1].glob("lessons/lesson_*/answers.py")):
        importlib.import_module(f"tests.lessons.{path.parent.name}.answers")
    return COLLECTED
