"""What a class knows before the course and after it: one table, from the students' progress files.

Only who answered all ten common questions both times counts for a gain; nobody's missing answer
is taken for a wrong one.
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
FEWEST, DRAWS = 8, 4000  # students that an interval is drawn from; resampled classes
Answers = dict[str, Choice | None]


class Student(NamedTuple):
    """What one student answered, by question."""

    before: Answers
    after: Answers


def find_students(folder: Path) -> tuple[list[Student], list[str]]:
    """Return what every progress file of a folder answers, and the names of unreadable ones.

    A student's file is `my_progress.json`, anywhere in the student's folder, or `anna.json`.
    """
    students, unreadable = [], []
    for path in _files(folder):
        try:
            if path.is_symlink() or not path.is_file():
                raise ValueError("it is no ordinary file")
            predicted = parse_progress(path)["predicted"]
        except (OSError, ValueError, RecursionError):
            unreadable.append(path.relative_to(folder).as_posix())
        else:
            students.append(Student(given(predicted, "before"), given(predicted, "after")))
    return students, unreadable


def _files(folder: Path) -> Iterator[Path]:
    """Yield one file for each student that has one, in the same order every time."""
    for entry in sorted(folder.iterdir(), key=os.fsencode):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            found = (Path(place, FILE) for place, _, names in os.walk(entry) if FILE in names)
            yield from sorted(found, key=lambda path: (len(path.parts), os.fsencode(path)))[:1]
        elif entry.suffix == ".json" and not is_notebook(entry):
            yield entry


def normalized_gain(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the share of what could be gained that classes gained; NaN if nothing could be.

    Formula: (mean after - mean before) / (1 - mean before), with means over the class.

    Args:
        before, after: shape (..., students), each student's share of right answers.

    Returns:
        shape (...): 1 if all is known afterwards, negative if less is known than before.

    Source: R. R. Hake, American Journal of Physics 66 (1998), 64-74.
    """
    gained, room = (after - before).mean(-1), (1 - before).mean(-1)
    return np.where(room > 1e-9, gained / np.maximum(room, 1e-9), np.nan)


def interval(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return where 95 % of the gains of classes lie that are drawn from these students.

    A bootstrap: each class has as many students, drawn with replacement, the same draws every
    time. In simulated classes it held the true gain in 88 of 100 cases for 8 students and in 92
    for 20, so it is a little narrow. NaN for fewer than 8 students, or if nothing could be gained
    in some of the classes.
    """
    n = len(before)
    if n < FEWEST:
        return float("nan"), float("nan")
    chosen = np.random.default_rng(0).integers(n, size=(DRAWS, n))
    low, high = np.quantile(normalized_gain(before[chosen], after[chosen]), [0.025, 0.975])
    return float(low), float(high)


def table(students: list[Student]) -> list[dict[str, str]]:
    """Return the table's rows: all ten questions that are asked twice, then topic by topic."""
    twice = asked("before")
    both = [one for one in students if all(i.id in one.before and i.id in one.after for i in twice)]
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
    """Return a row: the gain from the common questions, the mistake from every answer after."""
    before, after = (
        np.array([np.mean([_is_right(answers[item.id]) for item in common]) for answers in column])
        for column in ([one.before for one in both], [one.after for one in both])
    )
    numbers = [float("nan")] * 5
    if both:
        measured = before.mean(), after.mean(), normalized_gain(before, after)
        numbers = [*map(float, measured), *interval(before, after)]
    wrong = Counter(
        f"{choice.turn or item.id}: {choice.text}"
        for one in students
        for item in every
        if (choice := one.after.get(item.id)) and not choice.right
    )
    mistake, times = min(wrong.items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
    shown = ["" if np.isnan(number) else f"{number:.2f}" for number in numbers]
    values = (topic, str(len(both)), *shown, mistake, str(times or ""))
    return dict(zip(COLUMNS, values, strict=True))


def _is_right(choice: Choice | None) -> bool:
    return choice is not None and choice.right


def write_gains(folder: Path) -> str:
    """Write gains.csv if there is any progress file, and say in a sentence how the class did."""
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
    said = f"{folder / TABLE}: {first['students']} of {len(students)} answered both times"
    if first["gain"]:
        between = f" ({first['low']} to {first['high']})" if first["low"] else ""
        said += f", gain {first['gain']}{between}"
    if unreadable:
        said += f"; unreadable: {', '.join(map(plain, unreadable))}"
    return said + "."


def _number_or_text(value: str) -> str:
    """Return a number as it is, though it begins with a minus, and text as spreadsheets need it."""
    try:
        float(value)
    except ValueError:
        return plain(value)
    return value
