"""The lessons' titles, files, questions and minutes. They are data, so this module is short."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Lesson(NamedTuple):
    """One lesson of the course, as data/course.toml lists it."""

    title: str
    file: str
    """Its notebook, in the folder `notebooks`."""
    question: str
    minutes: int


_LIST = Path(__file__).parent / "data" / "course.toml"
LESSONS = {
    number: Lesson(**entry)
    for number, entry in tomllib.loads(_LIST.read_text(encoding="utf-8")).items()
}
"""The lessons by number, "00" to "17"."""


def files_of_lessons(name: str) -> dict[str, Path]:
    """Return the file of this name in each lesson's folder, by the lesson's number."""
    folder = Path(__file__).parent / "lessons"
    return {number: folder / f"lesson_{number}" / name for number in LESSONS}
