"""The lessons of this checkout, for its tools and tests, as the command itself finds them.

Only what a wheel does not need is here, so this module is short.
"""

import sys
from pathlib import Path

from transformer_lesson.command.lesson_files import (
    GLOSSARY,
    lesson_files,
    place_of,
    write_notebook,
)
from transformer_lesson.course import LESSONS

__all__ = ["GLOSSARY", "lesson_files", "place_of", "write_notebook"]
ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


def of_number(lesson: str, paths: list[Path]) -> list[Path]:
    """Return a lesson and what may follow it, or all for ""; end the program if there is none."""
    matches = [path for path in paths if lesson in ("", path.name[:2])]
    if not matches:
        numbers = f"{min(LESSONS)} to {max(LESSONS)}"
        sys.exit(f"There is no lesson {lesson!r}: give two digits, {numbers}, as in LESSON=03.")
    return matches
