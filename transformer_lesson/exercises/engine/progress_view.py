"""A learner's progress, drawn lesson by lesson."""

import html
import warnings
from collections.abc import Collection
from typing import NamedTuple

from transformer_lesson.exercises.engine.catalog import DEEPER, LESSONS
from transformer_lesson.exercises.engine.progress import progress_file, read_progress
from transformer_lesson.exercises.engine.question_bank import load_questions

GREEN, BLUE, EMPTY = "#009E73", "#0072B2", "rgba(128, 128, 128, 0.25)"


class LessonProgress(NamedTuple):
    """One notebook's progress: checks passed, predictions made and right, and the totals."""

    lesson: str
    title: str
    passed: int
    checks: int
    right: int
    predicted: int
    questions: int

    @property
    def done(self) -> bool:
        """Whether every check has passed and every prediction was made."""
        return self.passed == self.checks and self.predicted == self.questions


class Progress:
    """The result of `progress()`: a table of lessons, as text and as HTML."""

    def __init__(self, lessons: list[LessonProgress], place: str):
        self.lessons, self.place = lessons, place

    def __repr__(self) -> str:
        rows = [
            f"{'✓' if lesson.done else ' '} {lesson.lesson[:2]} {lesson.title:28}"
            f"checks {lesson.passed:2} of {lesson.checks:2}   "
            f"predictions {lesson.predicted:2} of {lesson.questions:2}, {lesson.right} right"
            for lesson in self.lessons
        ]
        return "\n".join([*rows, self.place])

    def _repr_html_(self) -> str:
        head = _line("th", ["", "lesson", "checks passed", "predictions made"])
        rows = "".join(map(_row, self.lessons))
        return f"<table>{head}{rows}</table><div>{html.escape(self.place)}</div>"


def progress() -> Progress:
    """Return the checks passed and the predictions made, lesson by lesson.

    What may follow a lesson has a row once something in it is done.
    """
    path = progress_file()
    try:
        state = read_progress(path)
    except OSError as error:
        warnings.warn(f"Progress could not be read from {path}: {error}", stacklevel=2)
        state = read_progress(None)
    rows = []
    for lesson, (title, *exercises) in LESSONS.items():
        rows.append(_counted(lesson, title, exercises, state))
        for name, (of_deeper, *more) in DEEPER.items():
            if name.startswith(lesson):
                row = _counted(name, f"… {of_deeper}", more, state)
                rows += [row] * bool(row.passed or row.predicted)
    place = f"Kept in {path.name}." if path else "Not saved: there are no notebooks in this folder."
    return Progress(rows, place)


def _counted(name: str, title: str, exercises: Collection[str], state: dict) -> LessonProgress:
    """Return what of a notebook's exercises and predictions a learner has done."""
    questions = [question for question in load_questions() if question.startswith(f"{name}.")]
    predictions = [
        state["predicted"][question] for question in questions if question in state["predicted"]
    ]
    passed = sum(exercise in state["passed"] for exercise in exercises)
    right = sum(answer.get("right") is True for answer in predictions)
    counts = passed, len(exercises), right, len(predictions), len(questions)
    return LessonProgress(name, title, *counts)


def _row(lesson: LessonProgress) -> str:
    title = f"{lesson.lesson[:2]} {html.escape(lesson.title)}"
    sign = '<span title="done">✓</span>' if lesson.done else ""
    passed, predicted = (
        f"{lesson.passed} of {lesson.checks}",
        f"{lesson.predicted} of {lesson.questions}",
    )
    cells = [
        sign,
        title,
        _bar(lesson.passed, lesson.checks, GREEN) + passed if lesson.checks else "",
        _bar(lesson.predicted, lesson.questions, BLUE) + f"{predicted}, {lesson.right} right",
    ]
    return _line("td", cells)


def _line(tag: str, cells: list[str]) -> str:
    """Return a table row; each cell sets its alignment because JupyterLab right-aligns cells."""
    inner = "".join(f'<{tag} style="text-align: left">{cell}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _bar(done: int, all_: int, color: str) -> str:
    share = 100 * done // all_
    outer = "display: inline-block; width: 120px; height: 10px; margin-right: 8px"
    inner = f"width: {share}%; height: 100%; background: {color}"
    return (
        f'<span aria-hidden="true" style="{outer}; background: {EMPTY}">'
        f'<span style="display: block; {inner}"></span></span>'
    )
