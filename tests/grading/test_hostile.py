"""Grading a class: broken and hostile notebooks, each in a process of its own.

Whatever they print, patch or break, a wrong function does not pass, no other line changes, and
nothing of theirs is left.
"""

import inspect
import socket
from types import SimpleNamespace

import pytest

from tests.grading.handed_in import CHECK, HEAD, NAME, RIGHT, grades, notebook
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import judge, sandbox

pytestmark = [pytest.mark.slow, pytest.mark.everything]

PATCHED = f"""
import json, os, sys, torch
import transformer_lesson.exercises as exercises
import transformer_lesson.exercises.engine.checks as checks
import transformer_lesson.exercises.engine.compare as compare
import transformer_lesson.grading.judge as judge
import transformer_lesson.grading.record as record
from transformer_lesson.exercises import Report

def always(*arguments, **options):
    return Report("{NAME}", "passed")

{HEAD}exercises.check = checks.check = checks.check_and_diagnose = always
    judge.verdict = judge.judged = always
    compare.differs = checks.differs = compare.same = judge.same = lambda *values: False
    compare.math.isclose = torch.allclose = torch.equal = lambda *values, **options: True
    print("{NAME}: passed")
    return 0.0
"""
FORGED = f"""
import json, os

{HEAD}line = {{"name": "{NAME}", "state": "called", "calls": 40 * [{{"result": "1.0"}}]}}
    for number in range(3, 50):
        try:
            os.write(number, json.dumps(line).encode() + b"\\n")
        except OSError:
            pass
    os._exit(0)
"""
REPLACED = f"""
import sys
import transformer_lesson.grading.run_student as run_student

class Liar(run_student.Recorder):
    def take(self, way, *arguments):
        self.calls.append({{"result": "1.0"}})
        return 1.0

sys.modules["__main__"].Recorder = run_student.Recorder = Liar
used = Liar

{HEAD}used
    return 1.0
"""
FLOOD = f"""
import os

{HEAD}for number in range(3, 50):
        try:
            for _ in range(20):
                os.write(number, b"%s" * 2**20)
        except OSError:
            pass
    return 1.0
"""
MEMORY = f"import torch\n{HEAD}all = []\n    while True:\n        all.append(torch.empty(2**27))"
DISK = f"{HEAD}open('big', 'wb').write(bytes(2**25))\n    return 1.0"

# What stands in a cell, and the status and the beginning of the mistake or message.
CLASS = {
    "right": (RIGHT, "passed", "Equal to"),
    "gone": (f"import os\n{HEAD}os._exit(0)", "crashed", "Its process ended by itself"),
    "patched": (PATCHED, "failed", ""),
    "forged": (FORGED, "failed", ""),
    "replaced": (REPLACED, "failed", ""),
    "flood": (FLOOD % "x", "crashed", "Its process sent more than"),
    "lines": (FLOOD % r"\n", "crashed", "What its process sent could not be read"),
    "memory": (MEMORY, "failed", "Your function raised RuntimeError"),
    "disk": (DISK, "failed", "Your function raised OSError"),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What a class gets for one exercise, each notebook graded where bubblewrap is missing."""
    folder = tmp_path_factory.mktemp("class")
    for student, (source, _, _) in CLASS.items():
        (folder / f"{student}.ipynb").write_text(notebook(source, CHECK))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "is_closed", lambda: False)
        assert command.main([str(folder), "--unconfined"]) == 0
    return [row for row in grades(folder) if row["exercise"] == NAME]


@pytest.mark.parametrize("student", CLASS)
def test_each_notebook_gets_its_own_row(graded, student):
    (row,) = [row for row in graded if row["student"] == student]
    _, status, said = CLASS[student]
    assert [row["student"] for row in graded] == sorted(CLASS)
    assert (row["lesson"], row["status"]) == ("10_larger_pieces", status), row
    assert (row["mistake"] or row["message"]).startswith(said)
    assert len(row["message"]) < 350


def test_what_hangs_or_ends_costs_one_exercise(monkeypatch):
    """The others of the same notebook are judged."""
    monkeypatch.setattr(sandbox, "is_closed", lambda: False)
    monkeypatch.setattr(sandbox, "SECONDS", 5.0)
    cells = (
        "import torch",
        "def attention_scores(Q, K):\n    while True:\n        pass",
        "def causal_mask(n):\n    return torch.ones(n, n).tril().bool()[None, None]",
        "import os\n\ndef padding_mask(ids, pad_id):\n    os.abort()",
    )
    reports = judge.grade(list(cells), "03")
    assert [(report.name, report.status) for report in reports] == [
        ("attention_scores", "timed out"),
        ("causal_mask", "passed"),
        ("padding_mask", "crashed"),
        ("scaled_dot_product_attention", "missing"),
    ]


def test_bytes_without_an_end_do_not_prolong_the_time(tmp_path, monkeypatch):
    """By a clock by which waiting takes no time; a process that is never done writes meanwhile."""
    path, clock = tmp_path / "written", SimpleNamespace(now=0.0, poll=lambda: None)
    path.write_bytes(b"started\n")

    def sleep(seconds: float) -> None:
        clock.now += seconds
        with path.open("ab") as file:
            file.write(b"x")

    clock.sleep, clock.monotonic = sleep, lambda: clock.now
    monkeypatch.setattr(sandbox, "time", clock)
    with path.open("rb") as file:
        lines = inspect.unwrap(sandbox._lines)(clock, file)  # the clock is no process
        assert next(lines) == b"started\n"
        with pytest.raises(sandbox.Stopped) as stopped:
            next(lines)
    assert stopped.value.args[0] == "timed out" and clock.now < sandbox.SECONDS + 1


@pytest.mark.skipif(not sandbox.is_closed(), reason="bubblewrap is missing or forbidden")
def test_with_bubblewrap_a_notebook_sees_neither_files_nor_network(tmp_path):
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        attempts = {
            "spy": f"import os\n{HEAD}return len(os.listdir({str(handed_in)!r}))",
            "vandal": f"import math\n{HEAD}open({sandbox.__file__!r}, 'a').write('x')",
            "caller": f"import socket\n{HEAD}socket.create_connection({address}, 1)",
            "killer": f"import os\n{HEAD}return os.kill(-1, 9)",
            "right": RIGHT,
        }
        for student, source in attempts.items():
            (handed_in / f"{student}.ipynb").write_text(notebook(source))
        assert command.main([str(handed_in)]) == 0
    rows = {row["student"]: row for row in grades(handed_in) if row["exercise"] == NAME}
    assert "FileNotFoundError" in rows["spy"]["message"]
    assert "Read-only file system" in rows["vandal"]["message"]
    assert "ConnectionRefusedError" in rows["caller"]["message"]
    assert rows["killer"]["status"] in ("failed", "crashed")
    assert rows["right"]["status"] == "passed"
