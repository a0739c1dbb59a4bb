"""A folder of students' notebooks: who handed in what, and the table of their grades."""

import csv
import io
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from transformer_lesson.exercises.catalog import LESSONS
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.files import printable, write_atomically

COLUMNS = ("student", "lesson", "exercise", "status", "mistake", "message")
LONGEST = 300  # characters of a message
LARGEST = 20_000_000  # bytes of a notebook; the lessons have less than 5 million
TITLE = re.compile(r"^#\s*(\d\d|Hunt \d{1,4})\s*·", re.MULTILINE)
HUNT = re.compile(r"hunt (\d{1,4})")


class Unreadable(Exception):
    """A file is no notebook of this course; the text says why."""


class Submission(NamedTuple):
    """What one student handed in: a notebook, or a file or folder without one."""

    student: str
    path: Path


class Row(NamedTuple):
    """One line of the table."""

    submission: Submission
    lesson: str
    report: Report


def find_submissions(folder: Path) -> list[Submission]:
    """Return every notebook of a folder, in the same order every time.

    The student is the name of the first folder or file below `folder`.
    """
    found = []
    for entry in sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name)):
        if entry.name.startswith(".") or (entry.is_file() and entry.suffix in (".csv", ".json")):
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
        if name.lower().endswith(".ipynb") and not _is_hidden(Path(place).relative_to(folder))
    ]


def _is_hidden(place: Path) -> bool:
    """Return whether a folder holds JupyterLab's checkpoints, a copy's earlier editions or such."""
    return any(part.startswith(".") for part in place.parts)


def read(path: Path) -> tuple[str, list[str]]:
    """Return a notebook's lesson, two digits or "hunt 7", and the sources of its code cells.

    Raises:
        Unreadable: the file is no notebook, or of no lesson.
    """
    if path.suffix.lower() != ".ipynb" or path.is_symlink() or not path.is_file():
        raise Unreadable("There is no notebook here: hand in an ordinary file that ends in .ipynb.")
    try:
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"The file is larger than {LARGEST // 10**6} MB.")
        cells = [_cell(cell) for cell in json.loads(path.read_bytes())["cells"]]
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("The file is not a notebook of version 4.") from error
    titles = [TITLE.search(source) for kind, source in cells if kind == "markdown"]
    named = [title.group(1).lower() for title in titles if title] or [path.name[:2]]
    if named[0] not in LESSONS and not HUNT.fullmatch(named[0]):
        raise Unreadable("Neither a title nor the file's name says which lesson it is.")
    return named[0], [source for kind, source in cells if kind == "code"]


def _cell(cell: dict) -> tuple[str, str]:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    return str(cell["cell_type"]), text


def missing(rows: list[Row], submissions: list[Submission], lesson: str) -> list[Row]:
    """Return a row for each student who handed in nothing for a lesson."""
    have = {row.submission.student for row in rows}
    others = {one.student: one for one in submissions if one.student not in have}
    report = Report("", "missing", "There is no notebook of this lesson.")
    return [Row(one, lesson, report) for one in others.values()]


def write_grades(rows: list[Row], folder: Path) -> Path:
    """Write grades.csv, in a single step; the mark at its start says UTF-8 to spreadsheets."""
    notebooks = {(row.submission, row.lesson) for row in rows}
    counts = Counter((submission.student, lesson) for submission, lesson in notebooks)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for (student, path), lesson, report in rows:
        if counts[student, lesson] > 1:  # the file alone says which notebook is meant
            student = f"{student} ({path.relative_to(folder).as_posix()})"
        message = report.message.partition("\n")[0]
        values = student, lesson, report.name, report.status, report.mistake or "", message
        writer.writerow(map(plain, values))
    write_atomically(folder / "grades.csv", text.getvalue().encode("utf-8-sig"))
    return folder / "grades.csv"


def plain(text: str) -> str:
    """Return text that a spreadsheet shows and does not compute: a formula gets a quote first."""
    text = printable(text, LONGEST)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
