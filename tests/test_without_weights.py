"""Lessons run from their first cell to their last on a machine that has no real weights."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.lessons import PATHS
from tools.execute_notebooks import CELL_TIMEOUT
from transformer_lesson.checkpoints.weights import PLACE, WEIGHTS, absent


@pytest.mark.slow
def test_cells_that_need_weights_say_so_and_all_others_run(tmp_path, monkeypatch):
    (path,) = [path for path in PATHS if "%%needs " in path.read_text(encoding="utf-8")]
    monkeypatch.setenv(PLACE, str(tmp_path / "weights"))
    notebook = nbformat.read(path, as_version=4)
    options = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    NotebookClient(notebook, timeout=CELL_TIMEOUT, coalesce_streams=True, **options).execute()
    needy = [cell for cell in notebook.cells if cell.source.startswith("%%needs ")]
    assert len(needy) > 20
    for cell in needy:
        said = [output.text for output in cell.outputs]
        assert said in [[f"{absent(name)}\n"] for name in WEIGHTS], cell.id
