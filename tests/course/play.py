"""Learners who go through lessons 01 to 10 in their own copies, with answers that others wrote.

`learners/` has whole learners: for every exercise an answer by somebody who had read the lesson and
its stub, and nothing of the package. Each writes in a way of their own: by loops, by einsum and the
library's calls, by recursion and small helpers. One who is drawn takes each answer from any.
"""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat

from tests.cells import is_slow, names_in, without_magics
from tests.exercises.test_collection import Notebook
from tools.handout import CHECK, is_stub
from transformer_lesson.exercises import Report, check
from transformer_lesson.exercises.engine.standalone import global_names

HERE = Path(__file__).parent
AUTHORS = ("ada", "emil", "noor")
HEADING = re.compile(r"^# %% \d\d (\w+)\n", re.MULTILINE)
USES_MINE = re.compile(r"(?<!import )\bmine\.\w+")


def answers(author: str) -> dict[str, str]:
    """Return an author's answers by exercise, in the order of the lessons."""
    _, *parts = HEADING.split((HERE / "learners" / f"{author}.py").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def drawn(seed: int) -> dict[str, str]:
    """Return the answers of a learner who takes each from one of the authors."""
    draw, by = random.Random(seed), [answers(author) for author in AUTHORS]
    return {name: draw.choice(by)[name] for name in by[0]}


class Lesson:
    """One lesson's cells in one namespace, each run when something needs it."""

    def __init__(self, path: Path):
        self.cells = nbformat.read(path, as_version=4).cells
        self.number, self.notebook, self.ran = path.name[:2], Notebook(), set()
        self.notebook.names |= {"display": lambda *shown: None}
        self.made_and_used = {
            i: _made_and_used(cell.source)
            for i, cell in enumerate(self.cells)
            if cell.cell_type == "code" and not is_stub(cell)
        }

    def exercises(self) -> Iterator[tuple[int, str]]:
        """Yield each exercise with the number of its cell."""
        for i, cell in enumerate(self.cells):
            if is_stub(cell):
                yield i, re.match(r"def (\w+)\(", cell.source)[1]

    def answer(self, i: int, name: str, source: str) -> Report:
        """Write an answer into its cell, run that, and check it as the next cell does."""
        self._prepare(i, _made_and_used(source)[1])
        self.notebook.run(source)
        self.made_and_used[i], self.cells[i].source = _made_and_used(source), source
        self.ran.add(i)
        assert CHECK.match(self.cells[i + 1].source)[1] == name
        return check(name, self.notebook.names[name])

    def with_mine(self, after: int) -> list[int]:
        """Return the cells behind one that use `mine` or what it gave, but none that trains."""
        found, given = [], set()
        for i, (made, used) in self.made_and_used.items():
            if USES_MINE.search(self.cells[i].source):
                given |= made
            elif not used & given:
                continue
            if i > after and not self._is_slow(i):
                found.append(i)
        return found

    def run(self, i: int) -> None:
        """Run a cell, and before it what it needs and what has not run yet."""
        self._prepare(i, self.made_and_used[i][1])
        self.notebook.run(self.cells[i].source)
        self.ran.add(i)

    def _prepare(self, before: int, names: set[str]) -> None:
        for i in self._makers(before, names):
            if i not in self.ran:
                self.run(i)

    def _makers(self, before: int, names: set[str]) -> list[int]:
        """Return the cells that gave these names their values last."""
        makers = {}
        for i in range(before):
            for name in self.made_and_used.get(i, (set(), set()))[0] & names:
                makers[name] = i
        return sorted(set(makers.values()))

    def _is_slow(self, i: int) -> bool:
        needs = self._makers(i, self.made_and_used[i][1])
        return is_slow(self.cells[i]) or any(map(self._is_slow, needs))


def _made_and_used(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell gives to the notebook, and those that it takes from there."""
    plain = without_magics(source)
    return names_in(source)[0], set(global_names(plain))


def play(
    folder: Path, chosen: dict[str, str], passed: Callable[[str, Report], None], every: int = 1
) -> None:
    """Go through the lessons; after each answer run what uses `mine`, up to the next lesson's end.

    Args:
        folder: with the learner's copies of the lessons.
        chosen: an answer for each exercise.
        passed: is told each exercise and its report.
        every: 2 for a learner who leaves out every second exercise.
    """
    lessons = [Lesson(path) for path in sorted(folder.glob("[01][0-9]_*.ipynb"))[1:11]]
    exercises = [(lesson, *pair) for lesson in lessons for pair in lesson.exercises()]
    for lesson, i, name in exercises[::every]:
        passed(name, lesson.answer(i, name, chosen[name]))
        following = [one for one in lessons if int(one.number) == int(lesson.number) + 1]
        for one, after in [(lesson, i), *((one, 0) for one in following)]:
            for cell in one.with_mine(after):
                one.run(cell)
