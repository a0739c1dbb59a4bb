"""Every lesson with its exercises solved: all checks pass, and nothing after them breaks."""

import inspect
import re

import nbformat
import pytest
from nbclient import NotebookClient

from tests.cells import names_in, without_slow_cells
from tools.execute_notebooks import CELL_TIMEOUT
from tools.handout import CHECK, is_stub, solved_copy, unpassed
from tools.lesson_files import lesson_files
from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.engine.standalone import bare_source

LESSONS = lesson_files()


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_a_stub_is_blank_or_the_function_with_the_bug(path):
    for cell in filter(is_stub, nbformat.read(path, as_version=4).cells):
        name = re.match(r"def (\w+)\(", cell.source).group(1)
        start = find(name).load_start()
        if start is not None:
            assert cell.source == bare_source(inspect.unwrap(start))
        else:
            assert cell.source.endswith("raise NotImplementedError")


class Twice(NotebookClient):
    """Runs every cell and runs it again, as learners do."""

    async def async_execute_cell(self, cell, *arguments, **options):
        await super().async_execute_cell(cell, *arguments, **options)
        return await super().async_execute_cell(cell, *arguments, **options)


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_a_solved_lesson_passes_every_check_also_when_cells_are_run_again(path, tmp_path):
    lesson = nbformat.read(path, as_version=4)
    stubs = [
        re.match(r"def (\w+)\(", cell.source).group(1) for cell in filter(is_stub, lesson.cells)
    ]
    notebook = solved_copy(lesson)
    for cell in without_slow_cells(notebook):
        assert not set(stubs) & names_in(cell.source)[1], f"{cell.id} needs an exercise: run it"
    resources = {"metadata": {"path": str(tmp_path)}}
    Twice(notebook, timeout=CELL_TIMEOUT, kernel_name="python3", resources=resources).execute()
    checks = [pair for cell in notebook.cells for pair in CHECK.findall(cell.source)]
    assert checks == [(name, name) for name in stubs]
    assert unpassed(notebook) == []
