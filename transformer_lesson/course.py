"""The lessons' titles, files, questions and minutes, which are data, and where copies are kept."""

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


class Deeper(NamedTuple):
    """A notebook of one idea that may follow a lesson, as data/course.toml lists it."""

    title: str
    file: str
    """Its notebook, in the folder `notebooks`: "deeper/01_byte_pairs.ipynb"."""
    question: str
    minutes: int
    exercises: tuple[str, ...] = ()
    """The lesson's exercises that are here and not in the lesson."""

    @property
    def lesson(self) -> str:
        """The number of the lesson that it follows."""
        return Path(self.file).name[:2]


_LIST = tomllib.loads((Path(__file__).parent / "data" / "course.toml").read_text(encoding="utf-8"))
DEEPER = {
    name: Deeper(file=f"deeper/{name}.ipynb", **entry)
    for name, entry in _LIST.pop("deeper", {}).items()
}
"""The notebooks behind the lessons by name, such as "01_byte_pairs"."""
LESSONS = {number: Lesson(**entry) for number, entry in _LIST.items()}
"""The lessons by number, "00" to "17"."""


MINE, EDITIONS = "my_lessons", ".editions"
"""The folder of a learner's copies, and the one in it of what they were made from."""


def learners_folder() -> Path:
    """Return the folder with `my_lessons/`: the working folder, or the one above its lessons."""
    here = Path.cwd()
    copies = [
        folder
        for folder in (here, *here.parents)
        if folder.name == MINE and (folder / EDITIONS).is_dir()
    ]
    return copies[0].parent if copies else here


def files_of_lessons(name: str) -> dict[str, Path]:
    """Return the file of this name in each lesson's folder, by the lesson's number."""
    folder = Path(__file__).parent / "lessons"
    return {number: folder / f"lesson_{number}" / name for number in LESSONS}
