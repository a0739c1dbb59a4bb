"""Finding the students' notebooks in a folder, and reading what is needed of them."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from transformer_lesson.exercises.catalog import LESSONS

LARGEST = 20_000_000  # bytes of a notebook; the lessons have less than 5 million
TITLE = re.compile(r"^#\s*(\d\d)\s*·", re.MULTILINE)


class Unreadable(Exception):
    """A file is no notebook of this course; the text says why."""


class Submission(NamedTuple):
    """What one student handed in: a notebook, or a file or folder without one."""

    student: str
    path: Path


def find_submissions(folder: Path) -> list[Submission]:
    """Return every notebook of a folder, in the same order every time.

    The student is the name of the first folder or file below `folder`. Where two notebooks have
    the same student, `label` tells them apart.
    """
    found = []
    for entry in sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name)):
        if entry.name.startswith(".") or (entry.is_file() and entry.suffix == ".csv"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            notebooks = sorted(_notebooks(entry), key=os.fsencode) or [entry]
            found += [Submission(entry.name, path) for path in notebooks]
        else:
            found.append(Submission(entry.stem, entry))
    return found


def _notebooks(folder: Path) -> list[Path]:
    return [
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(".ipynb") and ".ipynb_checkpoints" not in Path(place).parts
    ]


def label(submission: Submission, lesson: str, everyone: Counter, folder: Path) -> str:
    """Return the student's name, with the file's where it alone says which one is meant."""
    if everyone[submission.student, lesson] == 1:
        return submission.student
    return f"{submission.student} ({submission.path.relative_to(folder).as_posix()})"


def read(path: Path) -> tuple[str, list[str]]:
    """Return a notebook's lesson, two digits, and the sources of its code cells.

    Raises:
        Unreadable: the file is no notebook, or of no lesson.
    """
    if path.suffix.lower() != ".ipynb" or path.is_symlink() or not path.is_file():
        raise Unreadable("There is no notebook here, no ordinary file that ends in .ipynb.")
    try:
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"The file has more than {LARGEST // 10**6} MB.")
        cells = [_cell(cell) for cell in json.loads(path.read_bytes())["cells"]]
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("The file is no notebook, version 4.") from error
    titles = [TITLE.search(source) for kind, source in cells if kind == "markdown"]
    named = [title.group(1) for title in titles if title] or [path.name[:2]]
    if named[0] not in LESSONS:
        raise Unreadable("Neither a title nor the file's name says which lesson it is.")
    return named[0], [source for kind, source in cells if kind == "code"]


def _cell(cell: dict) -> tuple[str, str]:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    return str(cell["cell_type"]), text
