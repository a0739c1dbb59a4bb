"""A feedback file for each student, `feedback/STUDENT.md`: what to do next, and no solution.

It gives the cause and a nudge, one hint and the heading to read again. It has no failing example:
no number of a draw is in it, and of an answer that is wrong only on draws that `check` never shows
it says just that.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from transformer_lesson.exercises.engine.catalog import DEEPER, EXERCISES, LESSONS
from transformer_lesson.exercises.engine.help import help_with
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.files import printable, write_atomically
from transformer_lesson.grading.folder import FEEDBACK, LONGEST, Row

NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*`]')  # Windows refuses all but the last
NUMBER = re.compile(r"\d*\.\d+|\d{3,}")  # that could be a draw's
IMPORTED = "It is the package's own function, or calls it: your teacher decides what it is worth."
BLANK = "It is still to be written."


def write_feedback(rows: list[Row], folder: Path) -> Path:
    """Write a file for each student, on what was graded now, and return their folder."""
    place, used = folder / FEEDBACK, set()
    place.mkdir(exist_ok=True)
    ordered = sorted(rows, key=lambda row: row.submission.student)
    for student, graded in groupby(ordered, key=lambda row: row.submission.student):
        name = NOT_IN_NAMES.sub("_", printable(student, LONGEST))
        paragraphs = [f"# Feedback for {name}"]
        for (path, lesson), of_notebook in groupby(
            graded, key=lambda r: (r.submission[1], r.lesson)
        ):
            file = NOT_IN_NAMES.sub("_", printable(path.name, LONGEST))
            paragraphs.append(f"## {_title(lesson)} ({file})")
            for row in of_notebook:
                paragraphs += said(row.report)
        text = "\n\n".join([*paragraphs, ""])
        write_atomically(place / f"{_unused(name, used)}.md", text.encode())
    return place


def _title(lesson: str) -> str:
    title = (LESSONS | DEEPER).get(lesson, (lesson.capitalize() or "Notebook",))[0]
    return f"{lesson[:2]} · {title}" if lesson[:2].isdigit() else title


def _unused(name: str, used: set[str]) -> str:
    """Return a file's name that no other student has, on systems that ignore case, too."""
    stem = name[:60].strip(". ") or "_"
    number, unused = 1, stem
    while unused.casefold() in used:
        number += 1
        unused = f"{stem} ({number})"
    used.add(unused.casefold())
    return unused


def said(report: Report) -> Iterator[str]:
    """Yield what a student is told about an exercise, a paragraph each."""
    mistake = f": {report.mistake}" if report.mistake else ""
    if report.name:
        yield f"### `{report.name}`: {report.status}{mistake}"
    if report.name not in EXERCISES:
        yield _quoted(report.message)
        return
    helped = help_with(report)
    own_words = {"imported": IMPORTED, "not attempted": BLANK}.get(report.status, helped.why)
    if own_words:
        yield own_words
    elif helped.example:
        yield _quoted(NUMBER.sub("…", helped.example))
    if helped.hint:
        yield helped.hint
        yield f"Read again: “{helped.heading}” in {helped.notebook}."


def _quoted(message: str) -> str:
    """Return a message's first line as preformatted text: a student may have written it."""
    return f"    {printable(message.partition(chr(10))[0], LONGEST)}"
