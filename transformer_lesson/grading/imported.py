"""Whether a student's function is the package's own, or calls it, under whatever name.

Names and import statements do not say it: what counts is whether the code of our function runs.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from transformer_lesson.exercises.engine import choosing, folds
from transformer_lesson.exercises.engine.specification import Exercise

GIVES_OURS = choosing.variant, folds.solution, folds.solution_code
"""What makes a function of ours anew, or shows its source."""


class Watch:
    """Notices in `saw_ours` whether an exercise's own solution ran, or was asked for."""

    def __init__(self, exercise: Exercise):
        ours = (*GIVES_OURS, exercise.load_reference())
        # by their ids: a solution that was typed in is equal code, but not the same
        self._codes = {id(inspect.unwrap(function).__code__) for function in ours}
        self.saw_ours = False

    def _notice(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and id(frame.f_code) in self._codes:
            self.saw_ours = True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what runs in this block."""
        before = sys.getprofile()
        sys.setprofile(self._notice)
        try:
            yield
        finally:
            sys.setprofile(before)

    def watched(self, function: Callable) -> Callable:
        """Return a function that does the same and is watched."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self.watching():
                return function(*arguments, **named)

        return call
