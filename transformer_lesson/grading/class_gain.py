"""What a class knows before and after the course: one table, from the students' progress files.

Only students who answered all ten common questions both times count for the gain; a missing answer
never counts as wrong.
"""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_lesson.exercises.engine.inventory import Choice, Item, asked, given, load_items
from transformer_lesson.exercises.engine.progress import FILE, parse_progress
from transformer_lesson.files import write_atomically
from transformer_lesson.grading.folder import is_notebook, plain

TABLE = "gains.csv"
COLUMNS = ("topic", "students", "before", "after", "gain", "low", "high", "mistake", "chosen by")
FEWEST, DRAWS = 8, 4000  # least students for an interval; resampled classes
Answers = dict[str, Choice | None]


class Student(NamedTuple):
    """One student's answers, by question."""

    before: Answers
    after: Answers


def find_students(folder: Path) -> tuple[list[Student], list[str]]:
    """Return the answers in every progress file of a folder, and the names of unreadable files.

    A student's file is `my_progress.json`, anywhere in the student's folder, or `anna.json`.
    """
    students, unreadable = [], []
    for path in _files(folder):
        try:
            if path.is_symlink() or not path.is_file():
                raise ValueError("it is not an ordinary file")
            predicted = parse_progress(path)["predicted"]
        except (OSError, ValueError, RecursionError):
            unreadable.append(path.relative_to(folder).as_posix())
        else:
            students.append(Student(given(predicted, "before"), given(predicted, "after")))
    return students, unreadable


def _files(folder: Path) -> Iterator[Path]:
    """Yield one file for each student who has one, always in the same order."""
    for entry in sorted(folder.iterdir(), key=os.fsencode):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            paths = (Path(place, FILE) for place, _, names in os.walk(entry) if FILE in names)
            yield from sorted(paths, key=lambda path: (len(path.parts), os.fsencode(path)))[:1]
        elif entry.suffix == ".json" and not is_notebook(entry):
            yield entry


def normalized_gain(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the share of the possible gain that classes achieved; NaN if none was possible.

    Formula: (mean after - mean before) / (1 - mean before), with means over the class.

    Args:
        before, after: shape (..., students), each student's share of right answers.

    Returns:
        shape (...): 1 if all is known after the course, negative if less than before.

    Source: R. R. Hake, American Journal of Physics 66 (1998), 64-74.
    """
    gained, room = (after - before).mean(-1), (1 - before).mean(-1)
    return np.where(room > 1e-9, gained / np.maximum(room, 1e-9), np.nan)


def interval(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the class's gain.

    Classes of the same size are drawn from these students with replacement, with a fixed seed. In
    simulated classes the interval contained the true gain in 88 of 100 cases for 8 students and in
    92 for 20, so it is slightly narrow. NaN for fewer than 8 students, or if in some of the classes
    no gain was possible.
    """
    n = len(before)
    if n < FEWEST:
        return float("nan"), float("nan")
    chosen = np.random.default_rng(0).integers(n, size=(DRAWS, n))
    low, high = np.quantile(normalized_gain(before[chosen], after[chosen]), [0.025, 0.975])
    return float(low), float(high)


def table(students: list[Student]) -> list[dict[str, str]]:
    """Return the table's rows: the ten questions asked twice, then each topic."""
    twice = asked("before")
    both = [
        student
        for student in students
        if all(i.id in student.before and i.id in student.after for i in twice)
    ]
    topics = dict.fromkeys(item.topic for item in twice)
    rows = [_row("all ten asked twice", twice, load_items(), both, students)]
    for topic in topics:
        common = tuple(item for item in twice if item.topic == topic)
        every = tuple(item for item in load_items() if item.topic == topic)
        rows.append(_row(topic, common, every, both, students))
    return rows


def _row(
    topic: str,
    common: tuple[Item, ...],
    every: tuple[Item, ...],
    both: list[Student],
    students: list[Student],
) -> dict[str, str]:
    """Return a row: the gain from the common questions, the top mistake from all answers after."""
    before, after = (
        np.array([np.mean([_is_right(answers[item.id]) for item in common]) for answers in column])
        for column in ([student.before for student in both], [student.after for student in both])
    )
    numbers = [float("nan")] * 5
    if both:
        measured = before.mean(), after.mean(), normalized_gain(before, after)
        numbers = [*map(float, measured), *interval(before, after)]
    wrong = Counter(
        f"{choice.turn or item.id}: {choice.text}"
        for student in students
        for item in every
        if (choice := student.after.get(item.id)) and not choice.right
    )
    mistake, times = min(wrong.items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
    shown = ["" if np.isnan(number) else f"{number:.2f}" for number in numbers]
    values = (topic, str(len(both)), *shown, mistake, str(times or ""))
    return dict(zip(COLUMNS, values, strict=True))


def _is_right(choice: Choice | None) -> bool:
    return choice is not None and choice.right


def write_gains(folder: Path) -> str:
    """Write gains.csv if there is any progress file, and return a sentence on the class's gain."""
    students, unreadable = find_students(folder)
    if not students and not unreadable:
        return ""
    rows = table(students)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([_number_or_text(value) for value in row.values()] for row in rows)
    write_atomically(folder / TABLE, text.getvalue().encode("utf-8-sig"))
    first = rows[0]
    sentence = f"{folder / TABLE}: {first['students']} of {len(students)} answered both times"
    if first["gain"]:
        between = f" ({first['low']} to {first['high']})" if first["low"] else ""
        sentence += f", gain {first['gain']}{between}"
    if unreadable:
        sentence += f"; unreadable: {', '.join(map(plain, unreadable))}"
    return sentence + "."


def _number_or_text(value: str) -> str:
    """Return numbers unchanged, even negative ones, and text escaped for spreadsheets."""
    try:
        float(value)
    except ValueError:
        return plain(value)
    return value
