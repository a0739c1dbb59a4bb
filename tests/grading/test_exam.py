"""A hunt for a class: written for every number, graded right for right and wrong hand-ins."""

import json
import sys

import pytest

from tests.grading.handed_in import graded_here, grades
from transformer_lesson.exercises import exam
from transformer_lesson.exercises.boss import planted
from transformer_lesson.exercises.engine.explanation import words
from transformer_lesson.exercises.program import FUNCTIONS, sources
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import judge, sandbox
from transformer_lesson.grading.folder import read

pytestmark = pytest.mark.slow
HUNT = 7
THIRTY = [HUNT, *(pytest.param(n, marks=pytest.mark.everything) for n in range(30) if n != HUNT)]


@pytest.fixture
def graded_in_this_process(monkeypatch, unchecked):
    def here(cells, names):
        return [graded_here(name, cells) for name in names]

    monkeypatch.setattr(judge, "_until_stopped", here)


def handed_in(seed: int, mended: dict[str, str], folder) -> list[str]:
    """Write a hunt, put other functions into it, and read it as the grader does."""
    notebook = exam.hunt(seed)
    for cell in notebook["cells"]:
        for name, source in mended.items():
            if cell["source"].startswith(f"def {name}("):
                cell["source"] = source
    path = folder / "homework.ipynb"
    path.write_text(json.dumps(notebook))
    lesson, cells = read(path)
    assert lesson == f"hunt {seed}"
    return cells


@pytest.mark.parametrize("seed", THIRTY)
def test_hunts_are_graded(seed, tmp_path, graded_in_this_process):
    bugs, right = dict(planted(seed)), sources()
    blank = judge.grade_hunt(handed_in(seed, {}, tmp_path), seed)
    assert {one.name for one in blank} == set(bugs)
    for report in blank:
        assert report.status == "failed"
        assert report.mistake == words(report.name)[bugs[report.name]].name
    all_right = {name: right[name] for name in bugs}
    mended = judge.grade_hunt(handed_in(seed, all_right, tmp_path), seed)
    assert {one.name: one.status for one in mended} == dict.fromkeys(bugs, "passed")


def test_one_mended_one_not_and_one_broken(tmp_path, graded_in_this_process):
    bugs, right = dict(planted(HUNT)), sources()
    first, *others = bugs
    sound = next(name for name in FUNCTIONS if name not in bugs)
    broken = f"def {sound}(*inputs):\n    return inputs[0]"
    cells = handed_in(HUNT, {first: right[first], sound: broken}, tmp_path)
    found = {one.name: one.status for one in judge.grade_hunt(cells, HUNT)}
    assert found == {first: "passed", **dict.fromkeys([*others, sound], "failed")}


def test_ours_imported_is_no_mending(tmp_path, graded_in_this_process):
    name = next(iter(dict(planted(HUNT))))
    module, function = judge.find(name).reference.split(":")
    cells = handed_in(HUNT, {name: f"from {module} import {function} as {name}"}, tmp_path)
    found = {one.name: one.status for one in judge.grade_hunt(cells, HUNT)}
    assert found[name] == "imported"


def test_a_notebook_holds_no_answer():
    text = json.dumps(exam.hunt(HUNT))
    assert "choose" not in text
    assert not any(words(name)[turn].name in text for name, turn in planted(HUNT))


def test_a_folder_of_hunts_gets_its_rows(tmp_path, monkeypatch, graded_in_this_process):
    monkeypatch.setattr(sandbox, "can_start", lambda: True)
    monkeypatch.setattr(sandbox, "is_closed", lambda: True)
    assert exam.main([str(HUNT), str(tmp_path)]) == 0
    assert command.main([str(tmp_path), f"hunt {HUNT}"]) == 0
    rows = grades(tmp_path)
    assert [row["exercise"] for row in rows] == [name for name, _ in planted(HUNT)]
    assert {(row["lesson"], row["status"]) for row in rows} == {(f"hunt {HUNT}", "failed")}


def test_the_notebook_runs_and_its_probe_says_something(capsys):
    names: dict = {}
    *code, _, _ = [c["source"] for c in exam.hunt(HUNT)["cells"] if c["cell_type"] == "code"]
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


@pytest.mark.parametrize("arguments", [[], ["x"], ["-1"], ["10000"], ["1.5"], ["7", "nowhere"]])
def test_a_bad_number_gets_one_sentence(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        sys.exit(exam.main(arguments))
    said = "".join(capsys.readouterr())
    assert end.value.code == 1 and "give a whole number from 0 to 9999" in said
    assert said.count("\n") == 1
