"""Learners who go through lessons 00 to 10 in their own copies, with answers that others wrote.

`learners/` has an answer for every exercise, by somebody who had read the lesson and its stub, and
nothing of the package: by Ada, who writes loops for just the shapes that the lesson names, or by
Emil, who calls the library.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

from tests.cells import names_in, without_magics, without_slow_cells
from tests.exercises.notebook import Notebook
from tools.handout import CHECK, is_stub
from transformer_lesson.exercises import Report, check
from transformer_lesson.exercises.engine.collection import LESSON_OF
from transformer_lesson.exercises.engine.standalone import global_names

HERE = Path(__file__).parent
HEADING = re.compile(r"^# %% \d\d (\w+)\n", re.MULTILINE)
USES_MINE = re.compile(r"(?<!import )\bmine\.\w+")


def answers() -> dict[str, str]:
    """Return the answers by exercise, in the order of the lessons."""
    _, *parts = HEADING.split((HERE / "learners/ada_and_emil.py").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def every_second() -> dict[str, str]:
    """Return the answers of one who leaves out every second exercise, and so calls none of these.

    Within a lesson, that is: what an earlier lesson asked for lies ready, ours where it is missing.
    """
    written, chosen = answers(), {}
    left_out = [*written][1::2]
    for name in [*written][::2]:
        beside = {one for one in left_out if LESSON_OF[one] == LESSON_OF[name]}
        if not beside & set(global_names(written[name])):
            chosen[name] = written[name]
    return chosen


class Lesson:
    """One lesson, run from top to bottom with blank stubs; then single cells again, as they stood.

    Cells that train, and those that need them, are left out.
    """

    def __init__(self, path: Path):
        notebook = nbformat.read(path, as_version=4)
        without_slow_cells(notebook)
        self.cells, self.number = notebook.cells, path.name[:2]
        self.names_before: dict[int, dict] = {}
        self.answered: dict[str, object] = {}

    def exercises(self) -> Iterator[tuple[int, str]]:
        """Yield each exercise with the number of its cell."""
        for i, cell in enumerate(self.cells):
            if is_stub(cell):
                yield i, re.match(r"def (\w+)\(", cell.source)[1]

    def open(self) -> None:
        """Run all cells, once, and keep the names that each one found."""
        if self.names_before:
            return
        self.notebook = Notebook(imports="")  # what the lesson itself imports, no more
        self.notebook.names |= {"display": lambda *shown: None}
        for i, cell in enumerate(self.cells):
            self.names_before[i] = dict(self.notebook.names)
            if cell.cell_type == "code":
                self.notebook.run(without_magics(cell.source))

    def run(self, i: int, source: str) -> None:
        """Run a cell with the names that it found, and those of the answers given since."""
        self.notebook.names.clear()
        self.notebook.names |= self.names_before[i] | self.answered
        self.notebook.run(source)

    def answer(self, i: int, name: str, source: str) -> Report:
        """Write an answer into its cell, run that, and check it as a cell behind it does."""
        self.run(i, source)
        self.answered |= {one: self.notebook.names[one] for one in names_in(source)[0]}
        checks = (CHECK.match(cell.source) for cell in self.cells[i + 1 : i + 4])
        assert next(filter(None, checks))[1] == name
        return check(name, self.notebook.names[name])

    def run_with_mine(self, after: int) -> None:
        """Run the cells behind one that use `mine`, or a name that it gave."""
        given = set()
        for i, cell in enumerate(self.cells):
            if cell.cell_type != "code" or is_stub(cell):
                continue
            made, used = names_in(cell.source)
            uses_mine = USES_MINE.search(cell.source)
            if uses_mine:
                given |= made
            if i > after and (uses_mine or used & given):
                self.run(i, without_magics(cell.source))


def course(folder: Path, chosen: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Go through the lessons in a process of its own, since lessons change what they import.

    After each answer runs what uses `mine` in its lesson, and after a lesson's last one what does
    in the next lesson; each error ends it.

    Args:
        folder: with the learner's copies of the lessons.
        chosen: answers; an exercise without one is left out, and so is a lesson after the last.

    Returns:
        Status and message of each exercise's report.
    """
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[1]), "MPLBACKEND": "agg"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.course.play"],
        cwd=folder,
        env=environment,
        input=json.dumps(chosen),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def play(chosen: dict[str, str]) -> dict[str, tuple[str, str]]:
    last = max(LESSON_OF[name] for name in chosen)
    lessons = [Lesson(path) for path in sorted(Path().glob("[01][0-9]_*.ipynb"))]
    lessons, reports = [one for one in lessons if one.number <= last], {}
    for lesson, following in zip(lessons, [*lessons[1:], None], strict=True):
        lesson.open()
        for i, name in lesson.exercises():
            if name in chosen:
                report = lesson.answer(i, name, chosen[name])
                reports[name] = report.status, report.message
                lesson.run_with_mine(after=i)
        if following is not None:
            following.open()
            following.run_with_mine(after=0)
    return reports


if __name__ == "__main__":
    print(json.dumps(play(json.load(sys.stdin))))
