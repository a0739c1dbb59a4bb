"""What an instructor hands out: a blank copy, and a solved one that was run and passed."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.stored_lessons import each_notebook
from tools import handout
from tools.execute_notebooks import STILLS, LessonFailed
from transformer_lesson.exercises.engine.catalog import EXERCISES


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(handout, "HANDOUTS", tmp_path / "handouts")
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", str(tmp_path / "my_progress.json"))
    return tmp_path / "handouts"


@each_notebook
def test_the_student_copy_asks_and_does_not_answer(path):
    lesson = read(path)
    copy = handout.student_copy(lesson)
    nbformat.validate(copy)
    assert [cell.id for cell in copy.cells] == [cell.id for cell in lesson.cells]
    for cell, before in zip(copy.cells, lesson.cells, strict=True):
        if cell.cell_type == "code":
            assert cell.source == before.source  # stubs and all
            assert cell.outputs == [] and cell.execution_count is None
            assert not cell.source.startswith("solution(")
        else:
            assert before.cell_type == "markdown" or before.source.startswith("solution(")


@pytest.mark.parametrize("name", EXERCISES)
def test_what_a_solved_copy_defines_finds_what_it_imports(name):
    names = {}
    exec(handout.solve(f"def {name}("), names)
    assert callable(names[name])


@pytest.mark.everything
@pytest.mark.slow
def test_both_copies_of_a_lesson(folder, capsys):
    stills = sorted(STILLS.rglob("*"))
    assert handout.main("06") == 0
    assert sorted(STILLS.rglob("*")) == stills  # the site shows the lessons, not the copies
    name = "06_encoder.ipynb"
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.ipynb"))
    assert written == [f"solved/{name}", f"student/{name}"]
    assert "raise NotImplementedError" in json.dumps(read(folder / "student" / name))
    solved = read(folder / "solved" / name)
    assert "raise NotImplementedError" not in json.dumps(solved)
    assert handout.unpassed(solved) == []


@pytest.mark.parametrize("lesson", ["3", "../03"])
def test_a_lesson_that_there_is_not_gets_one_sentence(folder, lesson):
    with pytest.raises(SystemExit, match=r"no lesson '.*': give two digits, 00 to 17, as in LESS"):
        handout.main(lesson)
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["execute_notebooks", "redraw"])
def test_what_make_calls_takes_the_lesson_that_is_named(tool):
    ran = subprocess.run([sys.executable, "-m", f"tools.{tool}", "99"], capture_output=True)
    assert ran.returncode == 1 and b"no lesson '99': give two digits" in ran.stderr


def test_a_solved_copy_that_fails_is_not_left(folder, monkeypatch, capsys):
    def fail(path, learner, stills):
        raise LessonFailed("Cell 3 raised ValueError")

    monkeypatch.setattr(handout, "execute", fail)
    assert handout.main("06") == 1
    assert "Cell 3 raised ValueError" in capsys.readouterr().out
    assert [*(folder / "solved").iterdir()] == []


def test_a_check_that_does_not_pass_is_found():
    def cell(name: str, said: str):
        output = new_output("execute_result", data={"text/plain": f"{name}: {said}"})
        return new_code_cell(f'check("{name}", {name})', outputs=[output])

    lesson = new_notebook(cells=[cell("causal_mask", "passed"), cell("apply_byte_pairs", "failed")])
    assert handout.unpassed(lesson) == ["apply_byte_pairs"]
