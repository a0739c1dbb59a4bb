"""`make notebooks`: what is stored, and what a failing cell leaves."""

import base64
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import execute_notebooks
from tools.small_pictures import small
from transformer_lesson.exercises.engine.progress import progress_file

pytestmark = pytest.mark.slow

PICTURE_AND_WIDGET = """
import ipywidgets
from IPython.display import display
from transformer_lesson.figures.plots import curves
slider = ipywidgets.IntSlider(3)
view = slider._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"]
picture = curves({"a": [1, 2]}, "Title", "A line from 1 to 2.", "x", "y").png()
bundle = {"image/png": picture, "text/plain": "a slider"}
display({**bundle, "application/vnd.jupyter.widget-view+json": view}, raw=True)
"""


def write_notebook(path: Path, *sources: str, **tagged: str) -> None:
    cells = [new_markdown_cell("Prose"), *map(new_code_cell, sources)]
    cells += [new_code_cell(code, metadata={"tags": [tag]}) for tag, code in tagged.items()]
    nbformat.write(new_notebook(cells=cells), path)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(execute_notebooks, "lesson_files", lambda: [tmp_path / "03_lesson.ipynb"])
    return tmp_path / "03_lesson.ipynb"


@pytest.mark.everything
def test_executing_twice_gives_the_same_file(path, tmp_path):
    write_notebook(path, PICTURE_AND_WIDGET, "print(6 * 7)")
    execute_notebooks.execute(path, tmp_path)
    first = path.read_bytes()
    execute_notebooks.execute(path, tmp_path)
    assert path.read_bytes() == first
    notebook = nbformat.read(path, as_version=4)
    (output,) = notebook.cells[1].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    png = base64.b64decode(output.data["image/png"])
    assert small(png) == png
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_a_progress_bar_is_not_stored_and_progress_is_the_named_learners(path, tmp_path):
    bar = "from tqdm.auto import tqdm\nlist(tqdm(range(3)))"
    place = f"from {progress_file.__module__} import progress_file\nprint(progress_file().parent)"
    write_notebook(path, f"{bar}\n{place}")
    execute_notebooks.execute(path, tmp_path / "learner")
    (output,) = nbformat.read(path, as_version=4).cells[1].outputs
    assert output.text == f"{tmp_path / 'learner'}\n"


def test_a_failing_cell_is_shown_and_the_file_kept(path, capsys):
    write_notebook(path, "a = 1", "a / 0")
    before, surroundings = path.read_bytes(), dict(os.environ)
    assert execute_notebooks.main("03") == 1
    shown = capsys.readouterr().out
    assert "Cell 3 of 03_lesson.ipynb" in shown and "a / 0" in shown
    assert "ZeroDivisionError: division by zero" in shown
    assert path.read_bytes() == before and dict(os.environ) == surroundings


@pytest.mark.everything
def test_a_slow_cell_without_its_tag_is_named(path, monkeypatch, capsys):
    write_notebook(path, "1", slow="2")
    for limit, named in ((0.0, True), (1e9, False)):
        monkeypatch.setattr(execute_notebooks, "SLOW", limit)
        assert execute_notebooks.main("03") == 0
        said = capsys.readouterr().out
        assert ("tag cells" in said) == ("over 0.0 s: tag cells 2 `slow`" in said) == named
