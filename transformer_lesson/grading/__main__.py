"""Grade a folder: `make grade DIR=folder`, or with LESSON=03 one lesson only."""

import csv
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from transformer_lesson.exercises.catalog import LESSONS
from transformer_lesson.exercises.reports import Report
from transformer_lesson.grading import sandbox
from transformer_lesson.grading.judge import can_start, grade
from transformer_lesson.grading.submissions import (
    Submission,
    Unreadable,
    find_submissions,
    label,
    read,
)

COLUMNS = ("student", "lesson", "exercise", "status", "mistake", "message")
OPEN = """The notebooks run with limits, but not closed off: one that sets out to do harm could read
or delete your files and stop the grading. On Linux, install bubblewrap; elsewhere, grade as a user
of its own or in a container."""
BROKEN = "No process for a notebook starts here: run `make setup`, and free 2 GB of memory."
LONGEST = 300  # characters of a message

Row = tuple[Submission, str, Report]


def rows(submissions: list[Submission], lesson: str) -> Iterator[Row]:
    """Yield one row for each exercise of each notebook.

    Args:
        submissions: what the students handed in.
        lesson: two digits, or nothing for all lessons.
    """
    for submission in tqdm(submissions, unit="notebook", ascii=True):
        try:
            of_lesson, cells = read(submission.path)
        except Unreadable as error:
            yield submission, "", Report("", "unreadable", str(error))
            continue
        if lesson in ("", of_lesson):
            for report in grade(cells, of_lesson):
                yield submission, of_lesson, report


def plain(text: str) -> str:
    """Return text that a spreadsheet shows and does not compute: a formula gets a quote first."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", "�", text)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def table(graded: list[Row], folder: Path) -> list[tuple[str, ...]]:
    """Return the lines of the CSV file."""
    notebooks = {(submission, lesson) for submission, lesson, _ in graded}
    everyone = Counter((submission.student, lesson) for submission, lesson in notebooks)
    lines = []
    for submission, lesson, report in graded:
        student = label(submission, lesson, everyone, folder)
        message = report.message.partition("\n")[0]
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
        values = student, lesson, report.name, report.status, report.mistake or "", message
        lines.append(tuple(map(plain, values)))
    return lines


def without(graded: list[Row], submissions: list[Submission], lesson: str) -> list[Row]:
    """Return a row for each student who handed in nothing for the lesson that was asked for."""
    have = {submission.student for submission, _, _ in graded}
    missing = {one.student: one for one in submissions if lesson and one.student not in have}
    report = Report("", "missing", "There is no notebook of this lesson.")
    return [(one, lesson, report) for one in missing.values()]


def write(lines: list[tuple[str, ...]], path: Path) -> None:
    """Write the file in a single step; the mark at its start says UTF-8 to spreadsheets."""
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *lines])
    os.replace(new, path)


def main(folder: str = "", lesson: str = "") -> int:
    """Grade what is in a folder, write grades.csv there, and say how it went."""
    if not Path(folder).is_dir() or not folder:
        print(f"{folder!r} is no folder: name the one with the notebooks, as in DIR=handed_in.")
        return 1
    if lesson and lesson not in LESSONS:
        print(f"There is no lesson {lesson!r}: give two digits, 00 to 15, as in LESSON=03.")
        return 1
    place = Path(folder).resolve()
    if not os.access(place, os.W_OK):
        print(f"grades.csv cannot be written in {place}: copy the notebooks to a folder of yours.")
        return 1
    if not can_start():
        print(BROKEN)
        return 1
    submissions = find_submissions(place)
    sandbox.adopt_orphans()
    if not sandbox.is_closed():
        print(OPEN)
    graded = list(rows(submissions, lesson))
    graded += without(graded, submissions, lesson)
    write(table(graded, place), place / "grades.csv")
    counts = Counter(report.status for _, _, report in graded)
    said = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    print(f"{place / 'grades.csv'}: {said or 'nothing was handed in'}.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
