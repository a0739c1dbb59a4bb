"""Lessons run from their first cell to their last on a machine that has no real weights."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.stored_lessons import PATHS
from tools.execute_notebooks import CELL_TIMEOUT
from transformer_lesson.checkpoints.weights import PLACE, WEIGHTS, absent

NEEDY = {"12": 20, "13": 3, "16": 3}  # lessons, and how many of their cells need weights, at least


def test_these_lessons_need_weights_and_no_others():
    found = [path.name[:2] for path in PATHS if "%%needs " in path.read_text(encoding="utf-8")]
    assert found == list(NEEDY)


@pytest.mark.everything
@pytest.mark.slow
@pytest.mark.parametrize("number", NEEDY)
def test_cells_that_need_weights_say_so_and_all_others_run(number, tmp_path, monkeypatch):
    (path,) = [path for path in PATHS if path.name.startswith(number)]
    monkeypatch.setenv(PLACE, str(tmp_path / "weights"))
    notebook = nbformat.read(path, as_version=4)
    options = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    NotebookClient(notebook, timeout=CELL_TIMEOUT, coalesce_streams=True, **options).execute()
    needy = [cell for cell in notebook.cells if cell.source.startswith("%%needs ")]
    assert len(needy) > NEEDY[number]
    for cell in needy:
        said = [output.text for output in cell.outputs]
        assert said in [[f"{absent(name)}\n"] for name in WEIGHTS], cell.id
