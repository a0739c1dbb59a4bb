"""nbgrader releases, collects and grades what `make handout FORMAT=nbgrader` writes."""

import csv
import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.handed_out import CHEAT, RIGHT, WORK, WRONG, quick_copy
from tests.stored_lessons import each_notebook
from tools import handout, handout_nbgrader
from tools.handout_nbgrader import nbgrader_copy
from transformer_lesson.exercises.engine.catalog import EXERCISES

ANSWERS = {  # what replaces the stub's last lines, and the points for it
    getpass.getuser(): (RIGHT, 1),  # by way of the exchange, where students are users
    "ben": (WRONG, 0),
    "carl": (None, 0),
    "eve": (CHEAT, 0),
}
EXCHANGE = 'c.Exchange.root = "{}"\nc.Exchange.cache = "{}"\n'


@each_notebook
def test_each_exercise_has_a_solution_cell_and_a_locked_test_of_one_point(path):
    lesson = nbformat.read(path, as_version=4)
    copy = nbgrader_copy(lesson)
    nbformat.validate(copy)
    about = [cell.metadata.nbgrader for cell in copy.cells if "nbgrader" in cell.metadata]
    names = [one.grade_id for one in about if one.solution and not one.locked]
    tests = [one.grade_id for one in about if one.grade and one.locked and one.points == 1]
    stubs = [cell for cell in lesson.cells if handout.is_stub(cell)]
    assert len(names) == len(stubs) and sorted(tests) == sorted(f"test_{one}" for one in names)
    assert set(names) <= EXERCISES.keys() and len(about) == 2 * len(names)
    for cell in copy.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            assert cell.source.count("### BEGIN SOLUTION\n") == 1
    others = [cell for cell in copy.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    assert [cell.id for cell in others] == [cell.id for cell in lesson.cells]


def answered(path, answer: str | None) -> None:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if answer and handout.is_stub(cell):
            cell.source = cell.source.replace("raise NotImplementedError()", answer)
            assert answer in cell.source and "YOUR CODE HERE" in cell.source
        if answer == CHEAT and cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "pass  # so that nothing is tested"
    nbformat.write(notebook, path)


@pytest.mark.everything
@pytest.mark.slow
def test_nbgrader_releases_collects_and_grades(tmp_path, monkeypatch):
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: it is no part of the course")
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", str(tmp_path / "my_progress.json"))
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", programs)  # nbgrader starts alembic
    monkeypatch.setattr(handout_nbgrader, "COURSE", tmp_path / "teacher")
    monkeypatch.setattr(handout_nbgrader, "lesson_files", lambda: [quick_copy(tmp_path)])
    handout_nbgrader.main("10")
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    student.mkdir()
    configuration = teacher / "nbgrader_config.py"
    place = EXCHANGE.format(tmp_path / "exchange", tmp_path / "cache")
    configuration.write_text(configuration.read_text() + place)
    shutil.copy(configuration, student)

    def nbgrader(folder, *words: str) -> None:
        command = [sys.executable, "-m", "nbgrader", *words]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    nbgrader(teacher, "generate_assignment", WORK)
    nbgrader(teacher, "release_assignment", WORK)
    nbgrader(student, "fetch_assignment", WORK)
    answered(student / WORK / f"{WORK}.ipynb", RIGHT)
    nbgrader(student, "submit", WORK)
    nbgrader(teacher, "collect", WORK)
    for name, (answer, _) in ANSWERS.items():
        if name != getpass.getuser():
            folder = teacher / "submitted" / name / WORK
            shutil.copytree(teacher / "release" / WORK, folder)
            answered(folder / f"{WORK}.ipynb", answer)
    nbgrader(teacher, "autograde", WORK)
    nbgrader(teacher, "export")
    with (teacher / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    expected = {name: points for name, (_, points) in ANSWERS.items()}
    assert scores == expected
