"""Otter assigns and grades what `make handout FORMAT=otter` writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.grading.handed_in import NAME, grades
from tests.handed_out import CHEAT, RIGHT, WORK, WRONG, quick_copy
from tests.stored_lessons import each_notebook
from tools import handout, handout_otter
from transformer_lesson.grading import __main__ as command

BLANK = "raise NotImplementedError"
ANSWERS = {"anna": (RIGHT, 1), "ben": (WRONG, 0), "carl": (BLANK, 0), "eve": (CHEAT, 0)}


@pytest.mark.parametrize("form", ["nbgrader", "otter"])
def test_make_calls_the_tool_of_the_format(form):
    asked = ["make", "-n", "handout", f"FORMAT={form}", "LESSON=00"]
    folder = Path(handout.__file__).parents[1]
    plan = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert f"tools.handout_{form} 00" in plan


@each_notebook
def test_each_exercise_is_a_question_of_one_point_that_shows_the_stub(path):
    lesson = nbformat.read(path, as_version=4)
    copy = handout_otter.otter_copy(lesson)
    nbformat.validate(copy)
    stubs = [cell.source for cell in lesson.cells if handout.is_stub(cell)]
    shown, solutions, tests, points = [], [], [], 0
    for cell, behind in zip(copy.cells, [*copy.cells[1:], None], strict=True):
        if handout.is_stub(cell):
            compile(cell.source, cell.id, "exec")
            solution, prompt = cell.source.split("\n# END SOLUTION\n")
            assert prompt.startswith("r''' # BEGIN PROMPT\n")
            shown.append(prompt.split(" # BEGIN PROMPT\n")[1].removesuffix("\n''' # END PROMPT"))
            solutions.append(solution.removeprefix("# BEGIN SOLUTION NO PROMPT\n"))
        elif cell.source == "# BEGIN TESTS":
            tests.append(behind.source)
        points += cell.cell_type == "raw" and "\npoints: 1\n" in cell.source
    assert shown == stubs and solutions == [*map(handout.solve, stubs)]
    assert points == len(tests) == len(stubs)
    for stub, test in zip(stubs, tests, strict=True):
        assert handout.solve(stub) not in test and "assert report.status" in test
    assert not any("solution(" in cell.source for cell in copy.cells if cell.cell_type == "code")


def otter(folder: Path, *words: str) -> None:
    ran = subprocess.run([sys.executable, "-m", "otter", *words], cwd=folder, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.release
@pytest.mark.slow
def test_otter_gives_the_points_that_make_grade_gives(tmp_path, monkeypatch):
    pytest.importorskip("otter", reason="Otter is not installed: it is no part of the course")
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", str(tmp_path / "my_progress.json"))
    course = os.pathsep.join([str(handout.ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", course)
    monkeypatch.setattr(handout_otter, "COURSE", tmp_path)
    monkeypatch.setattr(handout_otter, "lesson_files", lambda: [quick_copy(tmp_path)])
    handout_otter.main("10")
    otter(tmp_path / WORK, "assign", f"{WORK}.ipynb", "dist")  # and passes the solutions
    dist = tmp_path / WORK / "dist"
    (autograder,) = (dist / "autograder").glob("*.zip")
    handed_in = tmp_path / "handed_in"
    handed_in.mkdir()
    points = {}
    for name, (answer, _) in ANSWERS.items():
        notebook = nbformat.read(dist / "student" / f"{WORK}.ipynb", as_version=4)
        assert "math.log(2) * n_tokens" not in nbformat.writes(notebook)
        (stub,) = filter(handout.is_stub, notebook.cells)
        stub.source = stub.source.replace(BLANK, answer)
        nbformat.write(notebook, handed_in / f"{name}.ipynb")
        otter(tmp_path, "run", f"handed_in/{name}.ipynb", "-a", str(autograder), "-o", ".")
        results = json.loads((tmp_path / "results.json").read_text())
        points[name] = sum(one.get("score", 0) for one in results["tests"])
    assert points == {name: expected for name, (_, expected) in ANSWERS.items()}
    assert command.main([str(handed_in), "10", "--unconfined"]) == 0
    passed = {row["student"]: row["status"] == "passed" for row in grades(handed_in)}
    assert points == passed and {row["exercise"] for row in grades(handed_in)} == {NAME}
