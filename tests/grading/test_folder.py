"""The folder, the table and the command line, without running anything."""

import os
import sys

import pytest

from tests.grading.handed_in import NAME, RIGHT, grades, notebook
from transformer_lesson.exercises import Report
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import sandbox
from transformer_lesson.grading.archives import Unreadable
from transformer_lesson.grading.folder import find_submissions, plain, read

pytestmark = pytest.mark.slow


@pytest.fixture
def nothing_runs(monkeypatch, closed_sandbox):
    report = Report(NAME, "failed")
    monkeypatch.setattr(command, "grade", lambda cells, lesson: [report])


def test_a_student_is_a_file_or_a_folder(tmp_path, nothing_runs):
    for name in ("berta/work/homework.ipynb", "anna.ipynb", "anna/homework.ipynb", "carl.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(notebook("1", "2"))
    (tmp_path / "dora").mkdir()
    for hidden in (".ipynb_checkpoints", ".earlier", ".editions"):
        (tmp_path / "berta/work" / hidden).mkdir()
        (tmp_path / "berta/work" / hidden / "homework.ipynb").write_text(notebook())
    command.main([str(tmp_path)])
    command.main([str(tmp_path)])  # its own grades.csv is nobody's notebook
    found = [(row["student"], row["status"]) for row in grades(tmp_path)]
    failed = ("anna (anna/homework.ipynb)", "anna (anna.ipynb)", "berta")
    unreadable = [(student, "unreadable") for student in ("carl", "dora")]
    assert found == [*((student, "failed") for student in failed), *unreadable]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_are_shown_and_never_computed(tmp_path, nothing_runs):
    names = [b"m\xfcller", b"=1+1", b"@SUM(A1)", b"-2", b"a\nb"]
    for name in [*names, "\u202eevil".encode(), "日本".encode()]:
        (tmp_path / os.fsdecode(name + b".ipynb")).write_text(notebook())
    command.main([str(tmp_path)])
    shown = {row["student"] for row in grades(tmp_path)}
    assert not any(plain(text)[0] in "=+-@\t\r " for text in (" +1", "\t=1", "\r=1"))
    assert shown == {"m\\udcfcller", "'=1+1", "'@SUM(A1)", "'-2", "a\\nb", "\\u202eevil", "日本"}


NONE = (b"\xff\xfe", b"[]", b'{"cells": 3}', b"[" * 10**6, bytes(99), b"{", b'{"nbformat": "x"}')


def test_what_is_no_notebook_or_cannot_be_read_is_called_so(tmp_path):
    def said() -> str:
        (submission,) = find_submissions(tmp_path)
        with pytest.raises(Unreadable) as error:
            read(submission)
        submission.path.unlink()
        return str(error.value)

    for content in NONE:
        (tmp_path / "a.ipynb").write_bytes(content)
        assert "not a notebook of version 4" in said()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.ipynb")
        assert "hand in an ordinary file" in said()
        (tmp_path / "link.ipynb").symlink_to(__file__)
        assert "hand in an ordinary file" in said()


def test_a_wrong_command_gets_one_sentence(capsys):
    for arguments, said in {
        (): "folder",
        (__file__,): "is not a folder",
        (".", "3"): "There is no lesson '3'",
        (".", "--fast"): "Unrecognized arguments: --fast",
    }.items():
        with pytest.raises(SystemExit) as end:
            sys.exit(command.main(list(arguments)))
        answer = "".join(capsys.readouterr())
        assert end.value.code == 1 and said in answer and answer.count("\n") == 1


def test_a_grader_that_cannot_start_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "anna.ipynb").write_text(notebook(RIGHT))
    monkeypatch.setattr(sandbox, "why_open", lambda: "It is open")
    monkeypatch.setattr(sandbox, "_command", lambda *words: [sys.executable, "-c", "raise OSError"])
    for flags, said in ([], "GRADE_FLAGS=--unconfined"), (["--unconfined"], "install the course"):
        assert command.main([str(tmp_path), *flags]) == 1
        answer = capsys.readouterr().out
        assert said in answer and answer.count("\n") == 1
    assert not (tmp_path / "grades.csv").exists()


def test_a_table_that_cannot_be_written_gets_one_sentence(tmp_path, nothing_runs, capsys):
    (tmp_path / "anna.ipynb").write_text(notebook("1"))
    (tmp_path / "anna.json").write_text("{}")
    for table in ("gains.csv", "grades.csv"):
        (tmp_path / table).unlink(missing_ok=True)
        (tmp_path / table).mkdir()
        assert command.main([str(tmp_path)]) == 1
        *_, said = capsys.readouterr().out.splitlines()
        assert f"{table} was not written" in said and said.endswith("grade again.")


def test_a_notebook_behind_a_lesson_is_graded_by_its_own_exercises(tmp_path):
    for name, title, lesson in (
        ("hw.ipynb", "# 01 · Deeper: Make your own tokenizer", "01_byte_pairs"),
        ("01_byte_pairs (1).ipynb", "", "01_byte_pairs"),
        ("hw.ipynb", "# 01 · Tokens and embeddings", "01"),
    ):
        (tmp_path / name).write_text(notebook("1", title=title))
        (submission,) = find_submissions(tmp_path)
        assert read(submission).lesson == lesson
        (tmp_path / name).unlink()
