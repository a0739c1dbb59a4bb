"""What the learner did is kept in one file, whatever happens to it."""

import json
import subprocess
import sys

import pytest

from transformer_lesson.checkpoints.weights import PLACE as WEIGHTS_PLACE
from transformer_lesson.checkpoints.weights import weights_folder
from transformer_lesson.exercises import check, predict, progress
from transformer_lesson.exercises.engine.catalog import DEEPER, EXERCISES, LESSONS
from transformer_lesson.exercises.engine.progress import (
    FORMAT,
    PLACE,
    progress_file,
    read_progress,
    remember,
)
from transformer_lesson.exercises.engine.question_bank import load_questions

HEAD = b'{"format": "%s", ' % FORMAT.encode()


@pytest.fixture
def file(folder):
    return folder.with_name("my_progress.json")


def lines():
    return [" ".join(line.split()) for line in repr(progress()).splitlines()]


def commit_to_a_wrong_option() -> None:
    card = predict("03.two_nouns")
    card.answers = [[option.right for option in card.options[0]].index(False)]


def test_passed_checks_and_predictions_are_kept_and_no_others(file):
    check("causal_mask", lambda n: None)
    check("causal_mask", lambda n: ...)
    assert not file.exists()
    check("merge_heads", EXERCISES["merge_heads"].load_reference())
    commit_to_a_wrong_option()
    state = json.loads(file.read_text(encoding="utf-8"))
    assert state["format"] == FORMAT
    assert state["passed"] == {"merge_heads": True}
    assert state["predicted"]["03.two_nouns"]["right"] is False
    assert state["predicted"]["03.two_nouns"]["chose"]


def test_progress_counts_per_lesson_and_a_lesson_is_done_when_everything_in_it_is(file):
    listed = [name for _, *own in (*LESSONS.values(), *DEEPER.values()) for name in own]
    assert sorted(listed) == sorted(EXERCISES)
    for name in LESSONS["04"][1:]:
        remember("passed", name, True)
    assert not any(lesson.done for lesson in progress().lessons)
    commit_to_a_wrong_option()
    assert any(line.startswith("04 Multi-head attention checks 4 of 4") for line in lines())
    assert any(line.startswith("03 ") and "predictions 1 of" in line for line in lines())
    assert "4 of 4" in progress()._repr_html_()
    for name in load_questions():
        if name.startswith("04."):
            remember("predicted", name, {"chose": "a", "right": False})
    assert [lesson.lesson for lesson in progress().lessons if lesson.done] == ["04"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe\x00", "utf-8"),
        (b"[1, 2]", "format"),
        (b'{"format": "something else"}', "format"),
        (HEAD + b'"passed": []}', "missing"),
        (b"[" * 100_000 + b"]" * 100_000, "damaged-1"),
        (HEAD + b'"passed": {}, "predicted": {"03.a": 5}}', "damaged-1"),
        (b'{"format": ' + b"9" * 5000 + b"}", "damaged-1"),
    ],
    ids=range(7),
)
def test_a_damaged_or_foreign_file_is_set_aside(file, content, reason):
    file.write_bytes(content)
    with pytest.warns(UserWarning, match=reason):
        remember("passed", "apply_byte_pairs", True)
    assert file.with_name("my_progress.damaged-1.json").read_bytes() == content
    assert read_progress(file)["passed"] == {"apply_byte_pairs": True}
    file.write_bytes(b"again")
    with pytest.warns(UserWarning, match="damaged-2"):
        progress()
    assert file.with_name("my_progress.damaged-1.json").read_bytes() == content


def test_what_a_newer_course_wrote_stays_and_nothing_is_written_again(file):
    for name in ("of_a_later_edition", "half of a pair \ud83d", "apply_byte_pairs"):
        remember("passed", name, True)
    assert len(read_progress(file)["passed"]) == 3
    written = file.stat().st_mtime_ns
    remember("passed", "apply_byte_pairs", True)  # which is known already
    assert file.stat().st_mtime_ns == written


@pytest.mark.slow
def test_notebooks_that_write_at_once_lose_nothing(file):
    code = (
        "import sys\nfrom transformer_lesson.exercises.engine.progress import remember\n"
        "for i in range(40): remember('passed', f'{sys.argv[1]}{i}', True)"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, letter]) for letter in "ab"]
    assert [worker.wait(120) for worker in workers] == [0, 0]
    assert len(read_progress(file)["passed"]) == 80


def test_where_nothing_can_be_written_a_warning_says_so_and_nothing_is_written_outside_lessons(
    tmp_path, monkeypatch
):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "a file" / "my_progress.json"))
    with pytest.warns(UserWarning, match=rf"written to .* \(.+\): copy the course .* {PLACE}\."):
        report = check("merge_heads", EXERCISES["merge_heads"].load_reference())
    assert report.status == "passed"
    (tmp_path / "a file").unlink()
    monkeypatch.delenv(PLACE)
    monkeypatch.chdir(tmp_path)
    remember("passed", "apply_byte_pairs", True)
    assert list(tmp_path.iterdir()) == []
    assert repr(progress()).endswith("no notebooks in this folder.")
    (tmp_path / "mine.ipynb").write_text("{}")
    remember("passed", "apply_byte_pairs", True)
    assert (tmp_path / "my_progress.json").exists()


def test_a_variable_that_is_empty_names_no_place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lesson.ipynb").touch()
    for variable in (PLACE, WEIGHTS_PLACE):
        monkeypatch.delenv(variable, raising=False)
        places = progress_file(), weights_folder()
        monkeypatch.setenv(variable, "")
        assert (progress_file(), weights_folder()) == places


def test_what_may_follow_a_lesson_has_a_row_once_begun_and_shares_the_lessons_file(
    tmp_path, monkeypatch
):
    monkeypatch.delenv(PLACE, raising=False)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "01_lesson.ipynb").touch()
    monkeypatch.chdir(tmp_path / "deeper")
    assert progress_file() == tmp_path / "my_progress.json"
    assert not any("…" in line for line in lines())
    remember("passed", "train_byte_pairs", True)
    (row,) = [line for line in lines() if "…" in line]
    assert row.startswith("01 … Make your own tokenizer checks 1 of 1")
