"""The benchmarks are run by hand; here each is imported, so that none falls behind the code."""

import re
import subprocess
from importlib import import_module

import pytest

from benchmarks import results, stale
from benchmarks.results import MEASURES, SECTIONS

CODE = "transformer_lesson/model/fast.py"


@pytest.mark.parametrize("script", SECTIONS)
def test_a_benchmark_still_finds_all_that_it_uses(script):
    assert callable(import_module(f"benchmarks.{script}").main)
    rooms = [results.ROOT / "transformer_lesson" / room for room in MEASURES[script]]
    assert rooms and all(room.is_dir() for room in rooms)


def git(*command: str) -> str:
    name = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    done = subprocess.run(
        ["git", *name, *command], cwd=results.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one file of code, measured at its only commit."""
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    (tmp_path / CODE).parent.mkdir(parents=True)
    (tmp_path / CODE).write_text('"""Fast."""\nx = 1\n', encoding="utf-8")
    git("init")
    git("add", "--all")
    git("commit", "--message", "first")
    row = results.Row("speed", "–", "–", "–", "**1.00**", None)
    results.write("fast", [row], "How.")
    return tmp_path


CHANGES = {
    "docstring, comment and layout": ('"""Faster."""\n\nx = (1)  # one\n', False),
    "code": ('"""Fast."""\nx = 2\n', True),
    "deletion": (None, True),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("committed", [True, False])
def test_a_table_is_stale_when_code_that_it_measures_has_changed(kind, committed, repository):
    assert f"commit {git('rev-parse', '--short=7', 'HEAD')}: " in results.RESULTS.read_text("utf-8")
    assert results.stale() == []
    text, expected = CHANGES[kind]
    if text is None:
        (repository / CODE).unlink()
    else:
        (repository / CODE).write_text(text, encoding="utf-8")
    if committed:
        git("add", "--all")
        git("commit", "--message", "second")
    found = results.stale()
    assert bool(found) == expected and all(f"changed {CODE}." in sentence for sentence in found)
    assert (" with changes:" in results.circumstances("fast")) == (expected and not committed)


def test_a_commit_that_nobody_knows_is_stale(repository):
    text = results.RESULTS.read_text("utf-8")
    for commit in ("commit 0123456", "of yore"):
        results.RESULTS.write_text(re.sub(r"commit \w+", commit, text), encoding="utf-8")
        assert [sentence[-29:-1] for sentence in results.stale()] == [
            "its commit is not known here"
        ]


def test_without_a_repository_it_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    stale.main()
    assert capsys.readouterr().out.startswith("There is no git repository here")
    assert "commit unknown:" in results.circumstances("fast")
