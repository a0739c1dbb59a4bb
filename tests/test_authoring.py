"""docs/authoring.md builds a lesson: its files are written into a copy of the course, and work."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.stored_lessons import ROOT, read

BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"`(transformer_lesson/[\w/.]+|notebooks/\w+\.ipynb)`")
FOLDER = "transformer_lesson/lessons/lesson_18"
EXERCISE = """
import torch
from transformer_lesson.exercises import check, predict
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import turns, variant
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.lessons.lesson_18 import figures

assert check("tempered", lambda z, t: (z / t).softmax(-1)).status == "passed"
marked = EXERCISES["tempered"].marked
named = {
    turn: check("tempered", variant(marked, frozenset([turn]))).mistake for turn in turns(marked)
}
assert named == {turn: said.name for turn, said in words("tempered").items()}, named
assert check("tempered", lambda z, t: 2 * (z / t).softmax(-1)).mistake == "a constant factor"
wrong = check("tempered", lambda z, t: (z / t).softmax(-1) ** 1.1)
assert wrong.mistake == "probabilities that do not sum to 1", wrong
assert "as the temperature falls towards 0" in repr(predict("18.cold"))
drawn = figures.by_temperature("A claim", {0.5: [0.9, 0.1], 2.0: [0.6, 0.4]})
assert drawn.alt == "The likeliest word has 0.90 at 0.5, 0.60 at 2.0."
"""
NOTEBOOK = """
import sys
from pathlib import Path
from tools.execute_notebooks import execute

path, learner = Path("notebooks/18_temperature.ipynb"), Path("learner")
learner.mkdir()
assert execute(path, learner, Path("stills")) == []
once = path.read_text()
execute(path, learner, Path("stills"))
assert path.read_text() == once and "0.87 at 0.5" in once
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a copy of the course with the page's lesson in it."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("transformer_lesson", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "notebooks").mkdir()
    page, begun = read("docs/authoring.md"), 0
    for block in BLOCK.finditer(page):
        path = folder / FILE.findall(page[begun : block.start()])[-1]
        text, begun = block[2], block.end()
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".ipynb":
            nbformat.write(_in_percent_format(text), path)
        else:
            before = path.read_text(encoding="utf-8") + "\n" if path.name == "course.toml" else ""
            path.write_text(before + text, encoding="utf-8")
    for (language, text), suffix in zip(
        BLOCK.findall(read("docs/explorables.md"))[:2], (".py", ".js"), strict=True
    ):
        assert language in ("python", "javascript")
        text = text.replace('from "./', 'from "../../explorables/web/')
        (folder / FOLDER / "temperature").with_suffix(suffix).write_text(text, encoding="utf-8")
    return folder


def _in_percent_format(text: str) -> nbformat.NotebookNode:
    cells = []
    for kind, source in re.findall(r"# %%(.*)\n((?:(?!# %%).*\n?)*)", text):
        source = source.strip("\n")
        if "markdown" in kind:
            cells.append(new_markdown_cell(re.sub(r"^# ?", "", source, flags=re.MULTILINE)))
        else:
            cells.append(new_code_cell(source, metadata={"tags": kind.split()} if kind else {}))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return new_notebook(cells=cells)


def failure_of(program: str, course) -> str:
    """Run a program in the copy of the course; return its error, or nothing."""
    places = os.pathsep.join([str(course), os.environ.get("PYTHONPATH", "")])
    progress = str(course / "my_progress.json")
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=course,
        env=os.environ | {"PYTHONPATH": places, "TRANSFORMER_LESSON_PROGRESS": progress},
        capture_output=True,
        text=True,
    )
    return run.stderr if run.returncode else ""


def test_the_exercise_the_prediction_and_the_figure_work(course):
    assert failure_of(EXERCISE, course) == ""


@pytest.mark.slow
@pytest.mark.browser
def test_the_notebook_runs_and_runs_again_to_the_same(course):
    assert failure_of(NOTEBOOK, course) == ""
