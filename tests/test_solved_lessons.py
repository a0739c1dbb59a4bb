"""Every lesson with its exercises solved: all checks pass, and nothing after them breaks."""

import inspect
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.folds import solution_code
from transformer_lesson.exercises.sources import bare_source

LESSONS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
CHECK = re.compile(r'^check\("(\w+)", (\w+)\)', re.MULTILINE)


def is_stub(cell) -> bool:
    return "exercise" in cell.metadata.get("tags", ())


def solve(stub: str) -> str:
    """Return the solution of the exercise that a cell asks for."""
    exercise = find(re.match(r"def (\w+)\(", stub).group(1))
    return solution_code([*exercise.load_helpers(), exercise.load_reference()])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_a_stub_is_blank_or_the_function_with_the_bug(path):
    for cell in filter(is_stub, nbformat.read(path, as_version=4).cells):
        name = re.match(r"def (\w+)\(", cell.source).group(1)
        start = find(name).load_start()
        if start is not None:
            assert cell.source == bare_source(inspect.unwrap(start))
        else:
            assert cell.source.endswith("raise NotImplementedError")


def shown(cell) -> str:
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_a_solved_lesson_passes_every_check(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    stubs = [cell for cell in notebook.cells if is_stub(cell)]
    for cell in stubs:
        cell.source = solve(cell.source)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=180, kernel_name="python3", resources=resources).execute()
    checks = [cell for cell in notebook.cells if CHECK.search(cell.source)]
    assert len(stubs) == sum(len(CHECK.findall(cell.source)) for cell in checks)
    for cell in checks:
        for name, answer in CHECK.findall(cell.source):
            assert name == answer
            assert f"{name}: passed" in shown(cell)
