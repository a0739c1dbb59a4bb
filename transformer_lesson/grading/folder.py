"""A folder of students' notebooks: who handed in what, and the table of their grades."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lesson import course
from transformer_lesson.exercises.engine.catalog import DEEPER, LESSONS
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.files import printable, write_atomically
from transformer_lesson.grading.archives import LARGEST, File, Unreadable, files_in, refuse, within

COLUMNS = ("student", "lesson", "exercise", "status", "mistake", "message")
LONGEST = 300  # characters of a message
FEEDBACK = "feedback"  # the folder of what was written to the students
TITLE = re.compile(r"^#\s*(\d\d(?=\s*·\s*(?:Deeper: (.+))?)|Hunt \d{1,4}(?=\s*·))", re.MULTILINE)
HUNT = re.compile(r"hunt (\d{1,4})")
PLATFORM = re.compile(  # Moodle's and Canvas's file names: the student, then the file
    r"(?P<moodle>.+_\d+)_assignsubmission_.*|(?P<canvas>[a-z\d]+)(?:_LATE)?(?P<id>_\d{3,})_\d{4,}_.+"
)
LITTER = ("__MACOSX", "Thumbs.db", "desktop.ini")  # files that operating systems add
PACKED = (".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz")
CONFLICT = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
MARKDOWN = "Its code stands in a cell that is no code cell: change the cell's type back to Code."


class Submission(NamedTuple):
    """One student's submission: a notebook, or a file or folder without one."""

    student: str
    path: Path
    load: Callable[[], bytes]


class Row(NamedTuple):
    """One line of the table."""

    submission: Submission
    lesson: str
    report: Report


class Notebook(NamedTuple):
    """A notebook's lesson, "03", "hunt 7" or "01_byte_pairs", and the sources of its cells."""

    lesson: str
    code: list[str]
    prose: list[str]


def find_submissions(folder: Path) -> list[Submission]:
    """Return every notebook of a folder and its archives, always in the same order.

    The student is the name of the first folder or file below `folder`, or the one in Moodle's or
    Canvas's file name.
    """
    submissions = []
    for entry in sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name)):
        data = entry.suffix in (".csv", ".json") and not is_notebook(entry) and entry.is_file()
        if data or _is_hidden(Path(entry.name)) or _is_feedback(entry):
            continue
        try:
            files = [
                file for file in _files(entry) if not _is_hidden(file.path.relative_to(folder))
            ]
        except Unreadable as error:
            files = [File(entry, partial(refuse, str(error)))]
        notebooks = [file for file in files if is_notebook(file.path) or _is_zip(file.path)]
        for path, load in notebooks or [File(entry, partial(refuse, _no_notebook(entry, files)))]:
            student = _student(path.relative_to(folder).parts, entry)
            submissions.append(Submission(student, path, load))
    return submissions


def _files(entry: Path) -> Iterator[File]:
    """Yield a file, or the files of a folder or an archive."""
    if entry.is_dir() and not entry.is_symlink():
        for place, folders, names in os.walk(entry):
            folders.sort(key=os.fsencode)
            for name in sorted(names, key=os.fsencode):
                try:
                    yield from _files(Path(place, name))
                except Unreadable as error:
                    yield File(Path(place, name), partial(refuse, str(error)))
    elif _is_zip(entry) and entry.is_file() and not entry.is_symlink():
        yield from files_in(entry, entry)
    else:
        yield File(entry, partial(_content, entry))


def _is_hidden(path: Path) -> bool:
    """Return whether a file is the system's, a JupyterLab checkpoint or an earlier edition."""
    return any(part.startswith(".") or part in LITTER for part in path.parts)


def _is_feedback(path: Path) -> bool:
    """Return whether this is the folder of an earlier grading's feedback, and no student's."""
    return (
        path.name == FEEDBACK and path.is_dir() and all(p.suffix == ".md" for p in path.iterdir())
    )


def is_notebook(path: Path) -> bool:
    """Return whether a file's name is a notebook's; browsers may add `.txt` or `.json`."""
    return ".ipynb" in path.name.lower()


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _student(parts: tuple[str, ...], entry: Path) -> str:
    """Return the student's name: from Moodle's or Canvas's file name, or the top-level entry's."""
    for part in parts:
        if parsed := PLATFORM.fullmatch(part):
            return parsed["moodle"] or parsed["canvas"] + parsed["id"]
    return entry.name if entry.is_dir() else re.sub(r"\.ipynb.*", "", entry.stem)


def _content(path: Path) -> bytes:
    """Return a file's content.

    Raises:
        Unreadable: not an ordinary file, unreadable, or too large.
    """
    if path.is_symlink() or not path.is_file():
        raise Unreadable("It is a link or a device: hand in an ordinary file that ends in .ipynb.")
    try:
        with path.open("rb") as file:
            return within(file.read(LARGEST + 1))
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error


def _no_notebook(entry: Path, files: list[File]) -> str:
    """Return why a submission has no notebook."""
    names = sorted({file.path.name for file in files})
    if any(name.lower().endswith(PACKED) for name in names):
        return "Of archives only zip is read: pack the notebook as a zip, or hand it in as it is."
    held = f"only {', '.join(names[:3])}{', …' * (len(names) > 3)}" if names else "nothing"
    return f"There is no notebook here, {held}: hand in the file that ends in .ipynb, no export."


def read(submission: Submission, lesson_if_unnamed: str = "") -> Notebook:
    """Return a notebook's lesson and cells.

    Args:
        submission: the student, and the file.
        lesson_if_unnamed: the lesson to assume if neither its title nor its name says so.

    Raises:
        Unreadable: not a notebook, or not of a lesson.
    """
    cells = [*map(_cell, _cells(submission.load()))]
    if not any(source.strip() for _, source in cells):
        raise Unreadable("The notebook is empty: perhaps it was handed in before it was saved.")
    titles = [TITLE.search(source) for kind, source in cells if kind == "markdown"]
    named = [*map(_titled, filter(None, titles)), _named(submission.path), lesson_if_unnamed]
    known = (*LESSONS, *DEEPER)
    lesson = next((name for name in named if name in known or HUNT.fullmatch(name)), "")
    if not lesson:
        raise Unreadable(
            "Neither a title nor the file's name says which lesson it is: name it, as in LESSON=03."
        )
    code = [source for kind, source in cells if kind == "code"]
    return Notebook(lesson, code, [source for kind, source in cells if kind != "code"])


def _titled(title: re.Match) -> str:
    """Return the lesson that a title names, or the notebook behind it."""
    number, deeper = title.groups()
    names = [name for name, (title, *_) in DEEPER.items() if title == (deeper or "").strip()]
    return names[0] if names else number.lower()


def _named(path: Path) -> str:
    """Return the lesson number in a file's name, or the notebook behind it."""
    notebooks = (course.LESSONS | course.DEEPER).items()
    names = [name for name, notebook in notebooks if Path(notebook.file).stem in path.name]
    return names[0] if names else path.name[:2]


def _cells(content: bytes) -> list:
    """Return a notebook's cells.

    Raises:
        Unreadable: not a notebook of version 4.
    """
    begin = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if not begin:
        raise Unreadable("The file is empty: save the notebook and hand it in again.")
    if begin.startswith((b"<!doctype", b"<html")):
        raise Unreadable("The file is a web page: download the notebook itself (on GitHub: Raw).")
    try:
        notebook = json.loads(content)
        cells = notebook.get("cells", notebook.get("worksheets") and [])
        if notebook.get("worksheets") or notebook.get("nbformat", 4) < 4:
            raise Unreadable(
                f"The file is a notebook of version {notebook.get('nbformat', 3)}: open it in "
                "Jupyter, save it once, and hand it in again."
            )
        return [*cells]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        if CONFLICT.search(content):
            raise Unreadable(
                "The file holds the lines <<<<<<< and >>>>>>> of a merge: undo the merge, keep one "
                "of the two versions, and hand it in again."
            ) from error
        raise Unreadable(
            "The file is not a notebook of version 4, or damaged: open it in Jupyter, save it, and "
            "hand it in again."
        ) from error


def _cell(cell: Any) -> tuple[str, str]:
    """Return a cell's type and source; a cell that lacks either counts as empty."""
    cell = cell if isinstance(cell, dict) else {}
    source = cell.get("source") or ""
    lines = source if isinstance(source, list) else [source]
    return str(cell.get("cell_type")), "".join(map(str, lines))


def with_prose(report: Report, prose: list[str]) -> Report:
    """Add to a report if the missing function is in a cell that is not a code cell."""
    written = re.compile(rf"^\s*def\s+{re.escape(report.name)}\b", re.MULTILINE)
    if report.status in ("missing", "not attempted") and any(map(written.search, prose)):
        return replace(report, message=MARKDOWN)
    return report


def missing(rows: list[Row], submissions: list[Submission], lesson: str) -> list[Row]:
    """Return a row for each student who submitted nothing for a lesson."""
    have = {row.submission.student for row in rows}
    without_notebook = {
        submission.student: submission
        for submission in submissions
        if submission.student not in have
    }
    report = Report("", "missing", "There is no notebook of this lesson.")
    return [Row(submission, lesson, report) for submission in without_notebook.values()]


def write_grades(rows: list[Row], folder: Path) -> Path:
    """Write grades.csv atomically; its byte order mark tells spreadsheets that it is UTF-8."""
    notebooks = {(row.submission, row.lesson) for row in rows}
    counts = Counter((submission.student, lesson) for submission, lesson in notebooks)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for (student, path, _), lesson, report in rows:
        if counts[student, lesson] > 1:  # only the file tells the notebooks apart
            student = f"{student} ({path.relative_to(folder).as_posix()})"
        message = report.message.partition("\n")[0]
        values = student, lesson, report.name, report.status, report.mistake or "", message
        writer.writerow(map(plain, values))
    write_atomically(folder / "grades.csv", text.getvalue().encode("utf-8-sig"))
    return folder / "grades.csv"


def plain(text: str) -> str:
    """Escape text that a spreadsheet would evaluate as a formula, with a leading quote."""
    text = printable(text, LONGEST)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
