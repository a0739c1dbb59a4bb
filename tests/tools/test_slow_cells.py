"""`make notebooks` names the cells that take long and are not tagged so."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import execute_notebooks


@pytest.mark.everything
@pytest.mark.slow
def test_a_slow_cell_without_its_tag_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(execute_notebooks, "lesson_files", lambda: [tmp_path / "03_lesson.ipynb"])
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", "")  # which `main` sets, for good
    monkeypatch.setattr(execute_notebooks, "SLOW", 0.0)
    tagged = new_code_cell("2", metadata={"tags": ["slow"]})
    cells = [new_markdown_cell("Prose"), new_code_cell("1"), tagged]
    nbformat.write(new_notebook(cells=cells), tmp_path / "03_lesson.ipynb")
    assert execute_notebooks.main("03") == 0
    assert "over 0.0 s: tag cells 2 `slow`" in capsys.readouterr().out
    monkeypatch.setattr(execute_notebooks, "SLOW", 1e9)
    assert execute_notebooks.main("03") == 0
    assert "tag cells" not in capsys.readouterr().out
