"""Write what a class gets: `make handout LESSON=03`, or `make handout` for all lessons.

handouts/student/ holds the lessons blank: no outputs, no solutions. handouts/solved/ holds them
with every exercise solved, run from top to bottom.
"""

import re
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from tools.execute_notebooks import LessonFailed, execute
from tools.lesson_files import ROOT, lesson_files, of_number, place_of
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.hints import solution_code

HANDOUTS = ROOT / "handouts"
SOLUTION = re.compile(r'solution\("(\w+)"\)')
CHECK = re.compile(r'^check\("(\w+)", (\w+)\)', re.MULTILINE)


def is_stub(cell: NotebookNode) -> bool:
    """Return whether a cell is where the learner writes."""
    return "exercise" in cell.metadata.get("tags", ())


def solve(stub: str) -> str:
    """Return the solution of the exercise that a cell asks for."""
    exercise = find(re.match(r"def (\w+)\(", stub).group(1))
    return solution_code([*exercise.load_helpers(), exercise.load_reference()])


def student_copy(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson without outputs and solutions; exercises are unchanged."""
    copy = deepcopy(lesson)
    for i, cell in enumerate(copy.cells):
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = [], None
        if match := SOLUTION.fullmatch(cell.source):
            text = f"*Solution of `{match.group(1)}`: in the solved copy.*"
            copy.cells[i] = new_markdown_cell(text, id=cell.id)
    return copy


def solved_copy(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson with every exercise solved, not yet run."""
    copy = deepcopy(lesson)
    for cell in filter(is_stub, copy.cells):
        cell.source = solve(cell.source)
    return copy


def unpassed(notebook: NotebookNode) -> list[str]:
    """Return the exercises of an executed notebook whose checks do not say "passed"."""
    names = []
    for cell in notebook.cells:
        shown = "\n".join(
            out.get("data", {}).get("text/plain", "") for out in cell.get("outputs", ())
        )
        checked = [name for name, _ in CHECK.findall(cell.source)]
        names += [name for name in checked if f"{name}: passed" not in shown]
    return names


def write_solved(lesson: NotebookNode, path: Path, learner: Path) -> None:
    """Write an executed solved copy; one that fails is not left behind.

    Args:
        lesson: the blank lesson.
        path: where to write the copy.
        learner: the folder that collects what passes.

    Raises:
        LessonFailed: a cell raised, or a check did not pass.
    """
    unfinished = path.with_name(f"unfinished_{path.name}")
    try:
        nbformat.write(solved_copy(lesson), unfinished)
        with tempfile.TemporaryDirectory() as stills:  # unused: the site shows the lessons
            execute(unfinished, learner, Path(stills))
        wrong = unpassed(nbformat.read(unfinished, as_version=4))
        if wrong:
            raise LessonFailed(f"These checks of {path.name} did not pass: {', '.join(wrong)}")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main(lesson: str = "") -> int:
    paths = of_number(lesson, lesson_files())
    with tempfile.TemporaryDirectory() as learner:
        for path in paths:
            notebook, place = nbformat.read(path, as_version=4), place_of(path)
            for folder in ("student", "solved"):
                (HANDOUTS / folder / place).parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(student_copy(notebook), HANDOUTS / "student" / place)
            print(f"handouts/student/{place}", flush=True)
            try:
                write_solved(notebook, HANDOUTS / "solved" / place, Path(learner))
            except LessonFailed as failure:
                print(f"handouts/solved/{place} was not written.\n\n{failure}")
                return 1
            print(f"handouts/solved/{place}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
