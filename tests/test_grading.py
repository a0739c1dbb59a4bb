"""Grading a class: right, wrong, broken and hostile notebooks, each judged by what it computes."""

import ast
import csv
import io
import json
import os
import socket
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from tools.execute_notebooks import NOTEBOOKS
from tools.handout import solved_copy, student_copy
from transformer_lesson.exercises import Report, catalog
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import judge, sandbox
from transformer_lesson.grading.slices import slice_for
from transformer_lesson.grading.submissions import Unreadable, read
from transformer_lesson.grading.wire import HEAD as HEADER
from transformer_lesson.grading.wire import Broken, Unpacker, receive

LESSONS = sorted(NOTEBOOKS.glob("*.ipynb"))
NAME = "bits_per_character"
HEAD = f"def {NAME}(loss_in_nats, n_tokens, n_characters):\n    "
FORMULA = "return loss_in_nats / math.log(2) * n_tokens / n_characters"
RIGHT = f"import math\n\n\n{HEAD}{FORMULA}"
PATCHED = f"""
import json, os, sys, torch
import transformer_lesson.exercises as exercises
import transformer_lesson.exercises.checks as checks
import transformer_lesson.exercises.compare as compare
from transformer_lesson.exercises import Report

def always(*arguments, **options):
    return Report("{NAME}", "passed")

{HEAD}exercises.check = checks.check = checks.verdict = always
    compare.same = checks.same = lambda *values, **options: True
    compare.math.isclose = torch.allclose = torch.equal = lambda *values, **options: True
    print("{NAME}: passed")
    return 0.0
"""
FORGED = f"""
import os

{HEAD}for number in range(3, 50):
        try:
            os.write(number, b'\\0\\0\\0\\x13\\0\\0\\0\\0{{"result": "passed"}}')
        except OSError:
            pass
    os._exit(0)
"""
LEFT_BEHIND = f"""
import math, os

{HEAD}for _ in range(12):
        if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", ["sleep", "86421.5"])
    {FORMULA}
"""
TITLE = "# 10 · A language model"
CHECK = f'check("{NAME}", {NAME})'

# What stands in a cell, and the status and the beginning of the mistake or message.
CELLS = {
    "right": (RIGHT, "passed", "Equal to"),
    "magic": (f"%matplotlib inline\n{RIGHT}\n!echo passed", "passed", "Equal to"),
    "timed": (f"%%time\n{RIGHT}", "passed", "Equal to"),
    "nats": (f"{HEAD}return loss_in_nats * n_tokens / n_characters", "failed", "nats for bits"),
    "blank": (f"{HEAD}raise NotImplementedError", "not attempted", ""),
    "dots": (f"{HEAD}...", "not attempted", ""),
    "empty": ("print('nothing')", "missing", "The notebook does not"),
    "value": (f"{NAME} = 3", "missing", "The notebook does not"),
    "syntax": (f"def {NAME}(loss, n_tokens:\n    return 1", "failed", "The cells that it needs"),
    "null": (f"{RIGHT}\0", "failed", "The cells that it needs"),
    "import": (f"import no_such\n{HEAD}return no_such.f()", "failed", "The cells that it needs"),
    "name": (f"{HEAD}return loss / n_tokens", "failed", "Your function raised NameError"),
    "memory": (
        f"import torch\n{HEAD}all = []\n    while True:\n        all.append(torch.empty(2**27))",
        "failed",
        "Your function raised RuntimeError",
    ),
    "exit": (f"import sys\n{HEAD}sys.exit(0)", "failed", "Your function raised SystemExit"),
    "loud": (RIGHT.replace("return", "print(10**6 * chr(120)); return"), "passed", "Equal to"),
    "odd": (f"{HEAD}return type('Strange', (), {{}})()", "failed", "`bits` must be a float"),
    "complex": (f"{HEAD}return 1j", "failed", "`bits` must be a float"),
    "disk": (
        f"{HEAD}open('big', 'wb').write(bytes(2**25))\n    return 1.0",
        "failed",
        "Your function raised OSError",
    ),
}
CLASS = {  # these need a process of their own
    "right": CELLS["right"],
    "loop": (f"{HEAD}\n    while True:\n        pass", "timed out", "Stopped after"),
    "gone": (f"import os\n{HEAD}os._exit(0)", "crashed", "Its process ended by itself"),
    "patched": (PATCHED, "failed", "Type and shape are right"),
    "forged": (FORGED, "crashed", "Its process"),
    "surrogate": (f"x = '\ud800'\n{RIGHT}", "failed", "The cells that it needs"),
    "huge": (f"{HEAD}return 'x' * 10**8", "crashed", "Its process sent"),
    "orphans": (LEFT_BEHIND, "passed", "Equal to"),
}


def notebook(*code: str, title: str = TITLE) -> str:
    def cell(kind: str, source: str) -> dict:
        outputs = {} if kind == "markdown" else {"outputs": [], "execution_count": None}
        return {"cell_type": kind, "metadata": {}, "source": source, **outputs}

    cells = [cell("markdown", title), *(cell("code", source) for source in code)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def grades(folder: Path) -> list[dict[str, str]]:
    with (folder / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The rows of a class, each student's notebook graded where bubblewrap is missing."""
    folder = tmp_path_factory.mktemp("class")
    for student, (source, _, _) in CLASS.items():
        (folder / f"{student}.ipynb").write_text(notebook(source, CHECK))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "is_closed", lambda: False)
        patch.setattr(judge, "SECONDS", 6.0)
        patch.setattr(command, "can_start", lambda: True)
        assert command.main(str(folder)) == 0
    return grades(folder)


@pytest.fixture(scope="module")
def process():
    """A student's process for many notebooks that leave it as it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "is_closed", lambda: False)
        process = judge.Process([], 60.0)
    yield process
    process.close()


@pytest.mark.parametrize("kind", CELLS)
def test_each_cell_gets_its_verdict(process, kind):
    source, status, said = CELLS[kind]
    process.open(["1", source, CHECK])
    report = judge._graded(process, NAME)
    assert report.status == status, report
    assert (report.mistake or report.message).startswith(said)


@pytest.mark.parametrize("student", CLASS)
def test_each_notebook_gets_its_own_row(graded, student):
    (row,) = [row for row in graded if row["student"] == student]
    _, status, said = CLASS[student]
    assert (row["lesson"], row["exercise"], row["status"]) == ("10", NAME, status), row
    assert (row["mistake"] or row["message"]).startswith(said)
    assert len(row["message"]) < 350


def test_the_order_is_that_of_the_names(graded):
    assert [row["student"] for row in graded] == sorted(CLASS)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are listed on Linux")
def test_no_process_is_left(graded):
    def command_line(process: Path) -> bytes:
        try:
            return (process / "cmdline").read_bytes()
        except OSError:
            return b""

    left = [
        process for process in Path("/proc").glob("[0-9]*") if b"86421.5" in command_line(process)
    ]
    assert left == []


@pytest.mark.parametrize("name", EXERCISES)
def test_the_verdict_is_that_of_check(process, name):
    """The reference passes; three mistakes are called by their names."""
    versions = {f"EXERCISES[{name!r}].load_reference()": None}
    known = list(enumerate(MISTAKES[name]))
    for number, mistake in (*known[:2], known[-1]):
        versions[f"MISTAKES[{name!r}][{number}].version"] = mistake.name
    for place, mistake in versions.items():
        process.open([SOURCE.format(place=place, name=name)])
        report = judge._graded(process, name)
        assert (report.status, report.mistake) == ("failed" if mistake else "passed", mistake)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_every_lesson_is_graded_as_it_was_handed_out(process, path):
    """Each function finds what it needs of its own lesson, and no more."""
    lesson = nbformat.read(path, as_version=4)
    expected = {"not attempted": student_copy(lesson), "passed": solved_copy(lesson)}
    for status, copy in expected.items():
        cells = [cell.source for cell in copy.cells if cell.cell_type == "code"]
        process.open(cells)
        for name in catalog.LESSONS[path.name[:2]][1:]:
            report = judge._graded(process, name)
            assert report.status == status, report


SOURCE = """
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES

wrapped = {place}


def {name}(*arguments):
    return wrapped(*arguments)
"""


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
        assert command.main(str(handed_in)) == 0
    rows = {row["student"]: row for row in grades(handed_in)}
    assert "FileNotFoundError" in rows["spy"]["message"]
    assert "Read-only file system" in rows["vandal"]["message"]
    assert "ConnectionRefusedError" in rows["caller"]["message"]
    assert rows["killer"]["status"] in ("failed", "crashed")
    assert rows["right"]["status"] == "passed"


# The folder and the file, without running anything


@pytest.fixture
def nothing_runs(monkeypatch):
    """Every notebook gets one report that says how many code cells it has."""
    monkeypatch.setattr(command, "can_start", lambda: True)
    monkeypatch.setattr(
        command, "grade", lambda cells, lesson: [Report(NAME, "failed", f"{len(cells)} cells")]
    )


def test_a_student_is_a_file_or_a_folder(tmp_path, nothing_runs):
    for name in ("berta/work/homework.ipynb", "anna.ipynb", "anna/homework.ipynb", "carl.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(notebook("1", "2"))
    (tmp_path / "dora").mkdir()
    (tmp_path / "berta/work/.ipynb_checkpoints").mkdir()
    (tmp_path / "berta/work/.ipynb_checkpoints/homework.ipynb").write_text(notebook())
    command.main(str(tmp_path))
    command.main(str(tmp_path))  # its own grades.csv is nobody's notebook
    assert [(row["student"], row["status"]) for row in grades(tmp_path)] == [
        ("anna (anna/homework.ipynb)", "failed"),
        ("anna (anna.ipynb)", "failed"),
        ("berta", "failed"),
        ("carl", "unreadable"),
        ("dora", "unreadable"),
    ]


def test_one_lesson_and_who_has_not_handed_it_in(tmp_path, nothing_runs):
    (tmp_path / "anna.ipynb").write_text(notebook("1"))
    (tmp_path / "berta.ipynb").write_text(notebook("1", title="# 03 · Attention"))
    assert command.main(str(tmp_path), "03") == 0
    found = [(row["student"], row["lesson"], row["status"]) for row in grades(tmp_path)]
    assert found == [("berta", "03", "failed"), ("anna", "03", "missing")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_are_shown_and_never_computed(tmp_path, nothing_runs):
    names = [
        b"m\xfcller",
        b"=1+1",
        b"@SUM(A1)",
        b"-2",
        b"a\nb",
        "\u202eevil".encode(),
        "日本".encode(),
    ]
    for name in names:
        (tmp_path / os.fsdecode(name + b".ipynb")).write_text(notebook())
    command.main(str(tmp_path))
    shown = {row["student"] for row in grades(tmp_path)}
    assert shown == {"m\\udcfcller", "'=1+1", "'@SUM(A1)", "'-2", "a�b", "�evil", "日本"}


@pytest.mark.parametrize("text", ["=1", " +1", "@a", "-1", "\t=1", "\r=1"])
def test_no_cell_begins_a_formula(text):
    assert command.plain(text)[0] not in "=+-@\t\r "


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b"{}", b'{"cells": 3}', b'{"cells": [1]}', b"[" * 10**6, b"\0" * 99],
    ids=range(8),
)
def test_what_is_no_notebook_is_called_so(tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content)
    with pytest.raises(Unreadable, match="no notebook, version 4"):
        read(tmp_path / "a.ipynb")


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "10_right.ipynb").write_text(notebook(RIGHT, title="no title"))
    assert read(tmp_path / "10_right.ipynb") == ("10", [RIGHT])
    (tmp_path / "a.ipynb").write_text(notebook(RIGHT, title="# 99 · Nothing"))
    with pytest.raises(Unreadable, match="which lesson"):
        read(tmp_path / "a.ipynb")
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(Unreadable, match="more than 20 MB"):
        read(tmp_path / "large.ipynb")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.ipynb")
        (tmp_path / "link.ipynb").symlink_to(tmp_path / "10_right.ipynb")
        for name in ("pipe.ipynb", "link.ipynb"):
            with pytest.raises(Unreadable, match="no ordinary file"):
                read(tmp_path / name)


@pytest.mark.parametrize(("folder", "lesson"), [("", ""), ("nowhere", ""), (".", "3"), (".", "16")])
def test_a_wrong_command_gets_one_sentence(capsys, folder, lesson):
    assert command.main(folder, lesson) == 1
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and said.endswith(".\n")


def test_a_grader_that_cannot_start_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "anna.ipynb").write_text(notebook(RIGHT))
    monkeypatch.setattr(sandbox, "is_closed", lambda: False)
    monkeypatch.setattr(sandbox, "_python", lambda *words: [sys.executable, "-c", "raise OSError"])
    assert command.main(str(tmp_path)) == 1
    assert "run `make setup`" in capsys.readouterr().out
    assert not (tmp_path / "grades.csv").exists()


# What a function needs of its notebook


def taken(name: str, *cells: str) -> list[str]:
    return [ast.unparse(node) for node in slice_for(name, list(cells))]


def test_only_what_a_function_needs_is_taken():
    cells = (
        "import math\nfrom torch import nn, ones\nmodel = train()",
        "scale = 2.0\ntable = {}\ntable['a'] = scale\nother = ones(3)",
        "def helper(x):\n    return table['a'] * x",
        "x = train()\nfor i in range(3):\n    x.step()",
        "def f(x):\n    return helper(x) + math.pi + sum(i for i in x)",
        "f(3)",
    )
    assert taken("f", *cells) == [
        "import math",
        "scale = 2.0",
        "table = {}",
        "table['a'] = scale",
        "def helper(x):\n    return table['a'] * x",
        "def f(x):\n    return helper(x) + math.pi + sum((i for i in x))",
    ]


def test_what_comes_after_the_check_has_not_happened_yet():
    cells = ["size = 1", "def f():\n    return size", 'check("f", f)', "size = 2", "f()"]
    assert taken("f", *cells) == ["size = 1", "def f():\n    return size"]
    assert taken("f", *cells, 'check("f", f)')[1:] == ["def f():\n    return size", "size = 2"]


def test_all_kinds_of_definitions_are_found():
    cells = ["class A:\n    b = c", "c: int = 1", "if c:\n    from math import pi", "d = e = pi"]
    assert len(slice_for("f", [*cells, "def f(x=d):\n    return A, e"])) == 5
    assert taken("f", "from math import *", "def f():\n    return pi")[0] == "from math import *"


def test_the_last_definition_counts_and_a_broken_one_is_no_other():
    assert taken("f", "def f():\n    return 1", "def f():\n    return 2")[-1].endswith("return 2")
    assert taken("f", "def f(): return 1", "for for") == ["def f():\n    return 1"]
    assert taken("g", "def f(): return 1") == []
    with pytest.raises(SyntaxError):
        slice_for("f", ["def f(): return 1", "def f(:\n    return 2"])


# What a student's process may send


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"tensor": "9", "gradient": False},
        {"tensor": "0"},
        {"list": 3},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"found": [0, 0, [], 0]},
        {"other": 3},
        {"code": "print(1)"},
    ],
    ids=str,
)
def test_what_is_no_value_is_refused(packed):
    with pytest.raises(Broken):
        Unpacker({"0": torch.zeros(2)}).unpack(packed)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xff" * 20,
        HEADER.pack(2, 0) + b"{",
        HEADER.pack(2, 4) + b"{}abcd",
        HEADER.pack(2, 0) + b"[]",
        HEADER.pack(200_000, 0) + b"[" * 200_000,
        HEADER.pack(5001, 0) + b"9" * 5001,
        HEADER.pack(2, 16) + b"{}" + b"\xff" * 7 + b"\0" * 9,
    ],
    ids=range(8),
)
def test_what_is_no_message_is_refused(sent):
    with pytest.raises(Broken):
        receive(io.BytesIO(sent))
