"""A hunt for a class: written for every number, graded right for right and wrong hand-ins."""

import json
import sys

import pytest

from tests.grading.handed_in import all_graded_here, grades
from transformer_lesson.exercises import exam
from transformer_lesson.exercises.boss import planted_bugs
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.exercises.program import FUNCTIONS, sources
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import judge
from transformer_lesson.grading.folder import find_submissions, read

pytestmark = pytest.mark.slow
HUNT = 7
THIRTY = [HUNT, *(pytest.param(n, marks=pytest.mark.release) for n in range(30) if n != HUNT)]


@pytest.fixture
def graded_in_this_process(monkeypatch, unchecked):
    monkeypatch.setattr(judge, "_until_stopped", all_graded_here)


def handed_in(seed: int, mended: dict[str, str], folder) -> list[str]:
    """Write a hunt, put other functions into it, and read it as the grader does."""
    notebook = exam.hunt(seed)
    for cell in notebook["cells"]:
        for name, source in mended.items():
            if cell["source"].startswith(f"def {name}("):
                cell["source"] = source
    path = folder / "homework.ipynb"
    path.write_text(json.dumps(notebook))
    (submission,) = find_submissions(folder)
    found = read(submission)
    assert found.lesson == f"hunt {seed}"
    return found.code


@pytest.mark.parametrize("seed", THIRTY)
def test_hunts_are_graded(seed, tmp_path, graded_in_this_process):
    bugs, right = dict(planted_bugs(seed)), sources()
    blank = judge.grade_hunt(handed_in(seed, {}, tmp_path), seed)
    assert {one.name for one in blank} == set(bugs)
    for report in blank:
        assert report.status == "failed"
        assert report.mistake == words(report.name)[bugs[report.name]].name
    all_right = {name: right[name] for name in bugs}
    mended = judge.grade_hunt(handed_in(seed, all_right, tmp_path), seed)
    assert {one.name: one.status for one in mended} == dict.fromkeys(bugs, "passed")


def test_a_folder_of_hunts_one_mended_one_imported_one_broken(
    tmp_path, graded_in_this_process, closed_sandbox
):
    bugs, right = dict(planted_bugs(HUNT)), sources()
    first, second, third = bugs
    sound = next(name for name in FUNCTIONS if name not in bugs)
    broken = f"def {sound}(*inputs):\n    return inputs[0]"
    module, function = judge.find(second).reference.split(":")  # ours imported is no mending
    imported = f"from {module} import {function} as {second}"
    handed_in(HUNT, {first: right[first], second: imported, sound: broken}, tmp_path)
    assert command.main([str(tmp_path), f"hunt {HUNT}"]) == 0
    rows = grades(tmp_path)
    assert {row["lesson"] for row in rows} == {f"hunt {HUNT}"}
    found = {row["exercise"]: row["status"] for row in rows}
    assert found == {first: "passed", second: "imported", third: "failed", sound: "failed"}


def test_the_notebook_holds_no_answer_runs_and_its_probe_says_something(capsys):
    names, notebook = {}, exam.hunt(HUNT)
    text = json.dumps(notebook)
    assert "choose" not in text
    assert not any(words(name)[turn].name in text for name, turn in planted_bugs(HUNT))
    *code, _, _ = [c["source"] for c in notebook["cells"] if c["cell_type"] == "code"]
    for source in code:
        exec(source, names)
    assert "sick: " in exam.probe("leak", names)
    with pytest.raises(ValueError, match="no probe 'x'"):
        exam.probe("x", names)


def test_nothing_is_overwritten_unasked(tmp_path, capsys):
    place = tmp_path / "hunt_07.ipynb"
    place.write_text("mine")
    assert exam.main(["7", str(tmp_path)]) == 1
    assert place.read_text() == "mine" and "is there already" in capsys.readouterr().out
    assert exam.main(["7", str(tmp_path), "--overwrite"]) == 0
    assert "Hunt 7" in place.read_text()


def test_a_bad_number_gets_one_sentence(capsys):
    for arguments in ([], ["x"], ["10000"], ["7", "nowhere"]):
        with pytest.raises(SystemExit) as end:
            sys.exit(exam.main(arguments))
        said = "".join(capsys.readouterr())
        assert end.value.code == 1 and "give a whole number from 0 to 9999" in said
