"""`tools/` and the Makefile: what a fresh, a half-made and an unlucky machine get."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.patience import PATIENCE
from tools import execute_notebooks, setup

ROOT = Path(__file__).parent.parent
# as typed by a user, not as a part of the `make test` that is running
OUTSIDE_MAKE = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str) -> subprocess.CompletedProcess:
    run = ["make", *arguments]
    return subprocess.run(run, cwd=ROOT, env=OUTSIDE_MAKE, capture_output=True, text=True)


@needs_make
def test_make_alone_lists_the_commands():
    listing = make().stdout
    for command in ("lab", "test", "notebooks", "bench", "clean"):
        assert f"make {command} " in listing


@needs_make
def test_an_old_python_gets_one_sentence(tmp_path):
    old = tmp_path / "an old python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    answer = make("setup", f"PYTHON={old}")
    assert answer.returncode != 0 and answer.stdout == ""
    assert f"{old} is not Python 3.11 or newer: install one" in answer.stderr


# tools/setup.py


@pytest.fixture
def venv(tmp_path, monkeypatch):
    """A folder whose set-up was finished."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    for name in setup.MADE_FROM:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as installed")
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "VENV", venv)
    monkeypatch.setattr(setup, "VENV_PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(setup, "STAMP", venv / "installed-for")
    monkeypatch.setattr(setup, "UNFINISHED", venv / "install-unfinished")
    setup.STAMP.write_text(setup.fingerprint())
    return venv


@pytest.fixture
def steps(venv, monkeypatch):
    """The steps that the set-up takes, noted instead of taken; pip works."""
    taken = []
    for step in ("make_venv", "check_venv", "install"):
        monkeypatch.setattr(setup, step, lambda step=step: taken.append(step))
    monkeypatch.setattr(setup, "answer", lambda *command: "pip 26.0 from here")
    return taken


def test_a_finished_set_up_does_nothing(steps):
    setup.set_up()
    assert steps == []


def test_a_read_only_folder_is_used_where_all_is_installed(venv, steps, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert setup.main([]) == 0
    setup.STAMP.write_text("of older lists")
    with pytest.raises(SystemExit, match="cannot be written to.*copy the course to a folder"):
        setup.main([])
    assert steps == [] and not (venv.parent / ".setup.lock").exists()


@pytest.mark.parametrize("changed", setup.MADE_FROM)
def test_a_changed_list_is_installed(venv, steps, changed):
    (venv.parent / changed).write_text("changed")
    setup.set_up()
    assert steps == ["check_venv", "install"]
    setup.set_up()
    assert steps == ["check_venv", "install"]


def test_a_killed_install_begins_anew(steps):
    setup.UNFINISHED.touch()
    setup.set_up()
    assert steps == ["make_venv", "check_venv", "install"]


def test_a_venv_without_pip_is_made_anew(steps, monkeypatch):
    setup.STAMP.unlink()
    monkeypatch.setattr(setup, "answer", lambda *command: None)
    setup.set_up()
    assert steps == ["make_venv", "check_venv", "install"]


@pytest.mark.parametrize(
    ("python", "pip", "advice"),
    [("3.10", "26.0", "make clean"), ("3.11", "20.3.4", "pip install --upgrade pip")],
)
def test_a_venv_that_is_too_old_is_told_what_to_do(venv, monkeypatch, python, pip, advice):
    answers = {"-c": python, "-m": f"pip {pip} from here"}
    monkeypatch.setattr(setup, "answer", lambda *command: answers[command[0]])
    with pytest.raises(SystemExit, match=advice):
        setup.check_venv()


def test_a_python_without_venv_is_told_what_to_install(venv, monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SystemExit, match=r"sudo apt install python3\.\d+-venv"):
        setup.make_venv()


def test_a_busy_port_gets_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        flags = [f"--port={taken.getsockname()[1]}", "--ServerApp.port_retries=0", "--no-browser"]
        code = (  # the Python of this run stands in for that of .venv
            "import sys; from tools import setup; setup.VENV_PYTHON = sys.executable; "
            "sys.exit(setup.open_lab(sys.argv[1:]))"
        )
        run = [sys.executable, "-c", code, *flags]
        answer = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert answer.returncode != 0
    assert "make lab LAB_FLAGS=--port=9000" in answer.stderr.splitlines()[-1]


# tools/execute_notebooks.py

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


def write_notebook(path: Path, *sources: str) -> None:
    cells = [new_markdown_cell("Prose"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells), path)


def test_executing_twice_gives_the_same_file(tmp_path):
    path = tmp_path / "lesson.ipynb"
    write_notebook(path, PICTURE_AND_WIDGET, "print(6 * 7)")
    execute_notebooks.execute(path)
    first = path.read_bytes()
    execute_notebooks.execute(path)
    assert path.read_bytes() == first
    notebook = nbformat.read(path, as_version=4)
    (output,) = notebook.cells[1].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_a_progress_bar_is_not_stored(tmp_path):
    path = tmp_path / "lesson.ipynb"
    bar = "from tqdm.auto import tqdm\nlist(tqdm(range(3)))\nprint('done')"
    write_notebook(path, bar)
    execute_notebooks.execute(path)
    (output,) = nbformat.read(path, as_version=4).cells[1].outputs
    assert output.text == "done\n"


def test_a_failing_cell_is_shown_and_the_file_kept(tmp_path, monkeypatch, capsys):
    path = tmp_path / "03_lesson.ipynb"
    write_notebook(path, "a = 1", "a / 0")
    before = path.read_bytes()
    monkeypatch.setattr(execute_notebooks, "NOTEBOOKS", tmp_path)
    assert execute_notebooks.main("03") == 1
    shown = capsys.readouterr().out
    assert "Cell 3 of 03_lesson.ipynb" in shown and "a / 0" in shown
    assert "ZeroDivisionError: division by zero" in shown
    assert path.read_bytes() == before
