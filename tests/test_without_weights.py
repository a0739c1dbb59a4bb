"""Lessons run from their first cell to their last on a machine that has no real weights."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.stored_lessons import PATHS
from tools.execute_notebooks import CELL_TIMEOUT
from transformer_lesson.checkpoints.weights import PLACE, WEIGHTS, absent

NEEDY = {  # notebooks, and how many of their cells need weights, at least
    "12_real_checkpoints": 10,
    "13_since_2017": 0,
    "12_against_your_translator": 0,
    "12_ask_the_manual": 3,
    "12_copying_heads": 3,
    "12_few_bits": 2,
    "12_loaded_right": 2,
    "12_one_block": 3,
    "13_a_model_of_2025": 0,
    "13_windows_and_sinks": 3,
    "16_twelve_questions": 2,
}


def test_these_lessons_need_weights_and_no_others():
    found = [path.stem for path in PATHS if '"%%needs ' in path.read_text(encoding="utf-8")]
    assert found == list(NEEDY)


@pytest.mark.everything
@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDY)
def test_cells_that_need_weights_say_so_and_all_others_run(name, tmp_path, monkeypatch):
    (path,) = [path for path in PATHS if path.stem == name]
    monkeypatch.setenv(PLACE, str(tmp_path / "weights"))
    notebook = nbformat.read(path, as_version=4)
    options = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    NotebookClient(notebook, timeout=CELL_TIMEOUT, coalesce_streams=True, **options).execute()
    needy = [cell for cell in notebook.cells if cell.source.startswith("%%needs ")]
    assert len(needy) > NEEDY[name]
    for cell in needy:
        said = [output.text for output in cell.outputs]
        assert said in [[f"{absent(name)}\n"] for name in WEIGHTS], cell.id


@pytest.mark.everything
@pytest.mark.slow
def test_a_model_that_you_have_needs_neither_weights_nor_ollama(tmp_path, monkeypatch):
    (path,) = [path for path in PATHS if path.stem == "12_a_model_that_you_have"]
    monkeypatch.setenv(PLACE, str(tmp_path / "weights"))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "nothing"))
    notebook = nbformat.read(path, as_version=4)
    options = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    NotebookClient(notebook, timeout=CELL_TIMEOUT, coalesce_streams=True, **options).execute()
    outputs = {cell.id: str(cell.get("outputs")) for cell in notebook.cells}
    assert "there are none in" in outputs["yours"] and "tiny:latest" in outputs["store"]
    assert "the child opens the window ." in outputs["write"]
