"""Check the exercises in a file without a notebook, in the words of `check`.

For learners who write in their own editor. It says what is wrong, shows the smallest failing
example, gives one hint and names what to read again. No line of a solution is shown, and nothing
is stored: progress is what passes in a lesson.
"""

import argparse
import ast
import contextlib
import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import torch

from transformer_lesson.command.my_lessons import read_notebook
from transformer_lesson.course import MINE
from transformer_lesson.exercises.engine.attempt import Excerpt, is_blank
from transformer_lesson.exercises.engine.catalog import EXERCISES, find
from transformer_lesson.exercises.engine.checks import ENDLESS, check_and_diagnose, one_thread
from transformer_lesson.exercises.engine.help import Help, help_with
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)
from transformer_lesson.grading.slices import slice_for

RUNNING = 60.0  # seconds for what a function needs: imports, constants, other functions
EQUAL = "It gives what the package's own gives, on every draw."
DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
CHECKED = re.compile(r"""^check\(["'](\w+)["']""", re.MULTILINE)


class OneSentence(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Exit with a sentence."""
        self.exit(1, f"{message.capitalize()}: give a file, as in {self.prog} answers.py\n")


class Unusable(Exception):
    """There is nothing to check; the text says why."""


def cells_of(path: Path) -> list[str]:
    """Return the code of a Python file, as one cell, or of a notebook's cells.

    Raises:
        Unusable: no such file, or another kind of file.
    """
    if not path.is_file():
        folder = path.parent if path.parent.is_dir() else Path()
        here = [file.name for file in folder.iterdir() if file.suffix in (".py", ".ipynb")]
        close = difflib.get_close_matches(path.name, here)
        hint = f": did you mean {' or '.join(close)}?" if close else ", .py or .ipynb."
        raise Unusable(f"There is no file {path}{hint}")
    if path.suffix not in (".py", ".ipynb"):
        raise Unusable(f"{path} is neither Python (.py) nor a notebook (.ipynb).")
    content = path.read_bytes()
    if path.suffix == ".py":
        return [content.decode(errors="replace")]
    notebook = read_notebook(content)
    if notebook is None:
        raise Unusable(f"{path} is not a notebook of version 4, or it is damaged.")
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def exercises_in(cells: list[str]) -> list[str]:
    """Return the exercises whose functions the cells define, in the course's order."""
    defined = {name for cell in cells for name in DEFINED.findall(cell)}
    return [name for name in EXERCISES if name in defined]


def meant_in(cells: list[str]) -> list[str]:
    """Return the exercises that cells define and call `check` for, or all that they define.

    A helper of a lesson may be called like an exercise of another lesson.
    """
    checked = {name for cell in cells for name in CHECKED.findall(cell)}
    defined = exercises_in(cells)
    return [name for name in defined if name in checked] or defined


def report_on(path: Path, cells: list[str], name: str) -> Report:
    """Run what an exercise's function needs of a file, then its check."""
    try:
        answer = run_for_at_most(RUNNING, lambda: _answer(path, cells, name))
    except TookTooLong:
        return Report(name, "failed", f"What it needs of {path.name} ran for over {RUNNING:.0f} s.")
    except BaseException as error:  # the learner's code, which may raise anything
        if isinstance(error, KeyboardInterrupt):
            raise
        what = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else error
        reason = f"What it needs of {path.name} raised {type(error).__name__}: {what}"
        return Report(name, "failed", reason)
    if answer is None or is_blank(answer):
        return Report(name, "not attempted")
    exercise = find(name)
    try:
        checked = run_for_at_most(2 * ANSWER_SECONDS, lambda: check_and_diagnose(exercise, answer))
    except TookTooLong:
        return Report(name, "failed", ENDLESS)
    return replace(checked, message=EQUAL) if checked.status == "passed" else checked


def _answer(path: Path, cells: list[str], name: str) -> Callable | None:
    names = {"__name__": "__main__", "__file__": str(path), "display": print}
    for statement in slice_for(name, cells):
        exec(compile(ast.Module([statement], []), path, "exec"), names)
    answer = names.get(name)
    return answer if callable(answer) else None


def in_words(helped: Help, number: int) -> str:
    """Return help as text, with the command for the next hint."""
    head = f"{helped.exercise}: {helped.status}{' yet' * (helped.status == 'not attempted')}"
    following = number < len(find(helped.exercise).hints)
    hint = f"{helped.hint}{f' (`--hint {number + 1}` gives the next)' * following}"
    place = f"Read again: “{helped.heading}” in {MINE}/{helped.notebook}" * bool(helped.heading)
    return "\n".join(filter(None, [head, helped.why, helped.example, hint, place]))


def reports_on(path: Path, exercise: str | None = None) -> list[Report]:
    """Return a report on each exercise that was tried in a file, or on one.

    Raises:
        Unusable: the file defines no such function.
        ValueError: there is no exercise of that name.
        OSError: the file cannot be read.
    """
    cells = cells_of(path)
    names = _asked(path, exercise, cells)
    sys.path.insert(0, str(path.resolve().parent))  # what it imports from beside it
    try:
        with (
            contextlib.redirect_stdout(Excerpt()),
            torch.random.fork_rng(devices=[]),
            one_thread(),
        ):
            reports = [report_on(path, cells, name) for name in names]
    finally:
        sys.path.pop(0)
    tried = [report for report in reports if report.status != "not attempted"]
    return tried if tried and exercise is None else reports


def main(arguments: list[str]) -> int | str:
    """Print a report on each exercise that was tried; return 1 if one of them has not passed."""
    chosen = _parsed(arguments)
    try:
        reports = reports_on(chosen.file, chosen.exercise)
    except (Unusable, ValueError, OSError) as error:  # no such file, exercise or function
        return str(error)
    for report in reports:
        passed = report.status == "passed"
        print(report if passed else in_words(help_with(report, chosen.hint), chosen.hint))
        print()
    return int(any(report.status != "passed" for report in reports))


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = OneSentence("transformer-lesson check", description=__doc__)
    parser.add_argument("file", type=Path, help="Python (.py) or a notebook (.ipynb)")
    parser.add_argument("--exercise", metavar="NAME", help="only this one")
    parser.add_argument("--hint", type=int, default=1, metavar="N", help="which hint to give")
    chosen = parser.parse_args(arguments)
    if chosen.hint < 1:
        parser.exit(1, f"There is no hint {chosen.hint}: the first is 1.\n")
    return chosen


def _asked(path: Path, exercise: str | None, cells: list[str]) -> list[str]:
    """Return the exercises to check.

    Raises:
        ValueError: there is no exercise of the given name; the message suggests close ones.
        Unusable: the file does not define its function, or none of any exercise.
    """
    here = exercises_in(cells)
    if exercise is None:
        if not here:
            raise Unusable(_why_none(path, cells))
        return meant_in(cells)
    name = find(exercise).name
    if name not in here:
        known = f"; it defines {', '.join(here)}" if here else ""
        raise Unusable(f"{path} does not define `{name}`{known}.")
    return [name]


def _why_none(path: Path, cells: list[str]) -> str:
    """Return why no exercise was found in a file: it is not Python, or defines none."""
    if path.suffix == ".py":
        try:
            ast.parse(cells[0])
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            return f"{path} cannot be read as Python: {getattr(error, 'msg', error)}{line}."
    return f"{path} defines no function of an exercise."
