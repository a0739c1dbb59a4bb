"""What students hand in, as teachers report it: each habit, its verdicts and its sentence.

The lesson is 03. A verdict is a letter for each exercise: passed, failed, imported, not attempted,
missing; or U for a file that is unreadable.
"""

import io
import json
import re
import stat
import zipfile
from pathlib import Path

import jaxtyping
import pytest

from tests.grading.handed_in import all_graded_here, grades, notebook
from transformer_lesson.exercises.engine.catalog import LESSONS
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import judge, sandbox

pytestmark = pytest.mark.slow

HEAD = "import math\n\nimport torch"
SCORES = "def attention_scores(Q, K):\n    return Q @ K.mT / math.sqrt(Q.size(-1))"
CAUSAL = "def causal_mask(n):\n    return torch.ones(n, n).tril().bool()[None, None]"
PADDING = "def padding_mask(ids, pad_id):\n    return (ids != pad_id)[:, None, None, :]"
ATTENTION = """def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ V, weights"""
OTHERS = [CAUSAL, PADDING, ATTENTION]
ALL = [HEAD, SCORES, *OTHERS]
STUB = 'def attention_scores(Q, K):\n    """Return the scores."""\n    raise NotImplementedError'
WRONG = "def attention_scores(Q, K):\n    return Q @ K.mT / Q.size(-1)"
CHECK = 'check("attention_scores", attention_scores)'
CHECK_LAST = 'check("scaled_dot_product_attention", scaled_dot_product_attention)'
TITLE = "# 03 · Attention"
MERGED = f"<<<<<<< HEAD\n{SCORES}\n=======\n{WRONG}\n>>>>>>> theirs"
MOODLE, CANVAS = "%s_1234_assignsubmission_file_hw.ipynb", "%s_LATE_4711_81234_03_attention-1.ipynb"
GOOD = notebook(*ALL, title=TITLE)


def cells(*code: str, title: str = TITLE) -> dict[str, str]:
    return {"hw.ipynb": notebook(*code, title=title)}


def changed(**change) -> dict[str, str]:
    return {"hw.ipynb": json.dumps(json.loads(GOOD) | change)}


def with_cells(*more: dict) -> dict[str, str]:
    return changed(cells=[*json.loads(GOOD)["cells"], *more])


def prose(kind: str) -> dict[str, str]:
    cells = json.loads(GOOD)["cells"]
    cells[2] = {"cell_type": kind, "metadata": {}, "source": SCORES}
    return changed(cells=cells)


def packed(files: dict[str, str | bytes], mode: int = 0) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()


def encrypted() -> bytes:
    """As a zip with a password says it of itself: a bit before and behind each file."""
    made = bytearray(packed({"hw.ipynb": GOOD}))
    made[6] |= 1
    made[made.index(b"PK\x01\x02") + 8] |= 1
    return bytes(made)


V3 = {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "code"}]}]}
DEEP = packed({"b.zip": packed({"c.zip": packed({"hw.ipynb": GOOD})})})
OF_A_MAC = {"w/hw.ipynb": GOOD, "__MACOSX/w/._hw.ipynb": b"\0", "w/.DS_Store": b""}
HALF_A_LINE = SCORES.replace(")):", "):").replace("-1))", "-1)")
BROKEN = "The cells that it needs raised "
ROOT, WITH_ROOT = "def root(x):\n    return math.sqrt(x)", SCORES.replace("math.sqrt", "root")
LAMBDA = "attention_scores = lambda Q, K: Q @ K.mT / math.sqrt(Q.size(-1))"


def first(statement: str) -> dict[str, str]:
    """A statement before the function's own `return`."""
    return cells(HEAD, SCORES.replace("return", f"{statement}; return"), *OTHERS)


PASSES = {
    "stub copied to the end": cells(*ALL, CHECK_LAST, STUB, CHECK),
    "mended at the end": cells(HEAD, WRONG, CHECK, *OTHERS, CHECK_LAST, SCORES),
    "helper at the end": cells(HEAD, WITH_ROOT, *OTHERS, CHECK, CHECK_LAST, ROOT),
    "imports at the end": cells(*ALL[1:], CHECK, CHECK_LAST, HEAD),
    "imported after the check": cells(
        *ALL, CHECK, CHECK_LAST, "from transformer_lesson.model.attention import *"
    ),
    "a star of no use": cells("from answers import *", *ALL),
    "magics": cells("%matplotlib inline\n!pip install x", HEAD, f"%%time\n{SCORES}", *OTHERS),
    "prints and shows": first("print(10**6 * 'x'); display(Q)"),
    "exits": cells(*ALL, "exit()", "import sys; sys.exit(1)"),
    "lambda": cells(HEAD, STUB, LAMBDA, *OTHERS),
    "byte order mark": {"hw.ipynb": b"\xef\xbb\xbf" + GOOD.encode()},
    "UTF-16": {"hw.ipynb": GOOD.encode("utf-16")},
    "no title": {"03_attention (1).ipynb": notebook(*ALL, title="")},
    "cells without source": with_cells({"cell_type": "code"}, {}, {"source": None}),
    "much output": with_cells({"cell_type": "code", "source": [], "outputs": ["x" * 10**7]}),
    "zip of a Mac": {"hw.zip": packed(OF_A_MAC)},
    "zip in a folder": {"w/a.zip": packed({"hw.ipynb": GOOD}), "w/Thumbs.db": b""},
    "zip of a zip": {"hw.zip": packed({"b.zip": packed({"hw.ipynb": GOOD})})},
}
OTHERWISE = {  # files, verdicts, and how the first sentence goes on
    "handed in as it was": (cells(HEAD, STUB, CHECK), "NMMM", ""),
    "spoiled at the end": (cells(*ALL, WRONG), "FPPF", "dividing by d_head"),
    "syntax error": (
        cells(HEAD, HALF_A_LINE, *OTHERS),
        "FPPF",
        f"{BROKEN}SyntaxError: '\\(' was never closed",
    ),
    "ours imported": (
        cells(HEAD, "from transformer_lesson.model.attention import attention_scores", *OTHERS),
        "IPPP",
        "It is the package's own function",
    ),
    "from a file beside it": (
        {"w/hw.ipynb": notebook("from answers import *", title=TITLE), "w/answers.py": SCORES},
        "MMMM",
        "The notebook does not define this function",
    ),
    "by name from a file": (
        cells("from answers import attention_scores", HEAD, CAUSAL, PADDING),
        "FPPM",
        f"{BROKEN}ModuleNotFoundError: No module named 'answers'",
    ),
    "asks": (first("input()"), "FPPF", "Your function raised (EOF|OS)Error"),
    "exits within": (first("exit()"), "FPPF", "Your function raised SystemExit"),
    "merge in a cell": (cells(HEAD, MERGED, *OTHERS), "FPPF", f"{BROKEN}SyntaxError: the lines <"),
    "turned into markdown": (prose("markdown"), "MPPF", "Its code stands in a cell that is no"),
    "turned into raw": (prose("raw"), "MPPF", "Its code stands in a cell that is no"),
}
UNREADABLE = {
    "empty": ({"hw.ipynb": notebook(title="")}, "The notebook is empty"),
    "merge in the file": ({"hw.ipynb": f"<<<<<<< HEAD\n{GOOD}\n>>>>>>> x\n"}, "The file holds the"),
    "empty file": ({"hw.ipynb": b""}, "The file is empty: save the notebook"),
    "cut off": ({"hw.ipynb": GOOD[:400]}, "The file is not a notebook of version 4, or d"),
    "version 3": ({"hw.ipynb": json.dumps(V3)}, "The file is a notebook of version 3: open it"),
    "HTML and Python": ({"w/hw.html": "<html>", "w/hw.py": SCORES}, "There is no notebook here, o"),
    "a page of GitHub": ({"hw.ipynb": "\n<!DOCTYPE html>"}, "The file is a web page: down"),
    "rar": ({"hw.rar": b"Rar!"}, "Of archives only zip is read"),
    "nothing": ({"w/.DS_Store": b""}, "There is no notebook here, nothing"),
    "neither title nor number": (cells(*ALL, title="Homework"), "Neither a title nor the file's"),
    "too much output": (
        with_cells({"cell_type": "code", "source": "", "outputs": ["x" * 20_000_000]}),
        "The file is larger than 20 MB: clear its outputs",
    ),
    "zip of a zip of a zip": ({"hw.zip": DEEP}, "An archive in an archive in an archive"),
    "zip cut off": ({"hw.zip": packed({"hw.ipynb": GOOD})[:99]}, "The archive is damaged or"),
    "zip with a password": ({"hw.zip": encrypted()}, "The archive is encrypted: pack it"),
    "zip that leads out": (
        {"hw.zip": packed({"../../hw.ipynb": GOOD})},
        "The archive holds a path",
    ),
    "zip with a link": (
        {"hw.zip": packed({"hw.ipynb": "/etc/passwd"}, stat.S_IFLNK | 0o777)},
        "The archive holds a link",
    ),
    "zip bomb": (
        {"hw.zip": lambda: packed({"hw.ipynb": GOOD, "zeros": bytes(250_000_000)})},
        "The archive would unpack to 250 MB, over 100 times",
    ),
    "zip of thousands": (
        {"hw.zip": lambda: packed({f"{i}.ipynb": "" for i in range(10_001)})},
        "The archive has more than 10,000 files",
    ),
}
HABITS = OTHERWISE | {name: (files, "PPPP", "") for name, files in PASSES.items()}
HABITS |= {name: (files, "U", said) for name, (files, said) in UNREADABLE.items()}
LETTERS = dict(P="passed", F="failed", I="imported", N="not attempted", M="missing")


def graded(folder: Path, files: dict, *options: str) -> list[dict[str, str]]:
    """The table of a folder with these files, graded in this process; large ones are made now."""
    for name, content in files.items():
        content = content() if callable(content) else content
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "can_start", lambda: True)
        patch.setattr(sandbox, "why_open", lambda: None)
        patch.setattr(judge, "_until_stopped", all_graded_here)
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        assert command.main([str(folder), *options]) == 0
    return grades(folder)


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_gets_its_verdicts_and_its_sentence(habit, tmp_path):
    files, verdicts, sentence = HABITS[habit]
    rows = graded(tmp_path, files)
    assert {row["student"] for row in rows} == {Path(min(files)).parts[0].partition(".")[0]}
    if verdicts == "U":
        expected = [("", "", "unreadable")]
    else:
        pairs = zip(LESSONS["03"][1:], verdicts, strict=True)
        expected = [("03", name, LETTERS[verdict]) for name, verdict in pairs]
    assert [(row["lesson"], row["exercise"], row["status"]) for row in rows] == expected, rows
    first = next((row for row in rows if row["status"] not in ("passed", "not attempted")), None)
    if sentence:
        assert re.match(sentence, first["mistake"] or first["message"]), first


def test_students_are_told_apart_as_moodle_and_canvas_name_them(tmp_path):
    """In an archive, in a folder, as loose files; umlauts, and what a Mac makes of them."""
    archive = packed({MOODLE % "Anna Müller": GOOD, CANVAS % "bergcarl": GOOD})
    moodle = "Dora Groß_77_assignsubmission_file_/hw.zip"
    files = {"class.zip": archive, moodle: packed({"a.ipynb": GOOD}), CANVAS % "ernst": GOOD}
    files |= {"u\u0308mit.ipynb": GOOD, "Jo/hw (1).ipynb": GOOD, "Jo/hw.ipynb": GOOD}
    students = [row["student"] for row in graded(tmp_path, files)][::4]
    assert students == [
        *("Dora Groß_77", "Jo (Jo/hw (1).ipynb)", "Jo (Jo/hw.ipynb)"),
        *("Anna Müller_1234", "bergcarl_4711", "ernst_4711", "u\u0308mit"),
    ]


def test_a_lesson_that_is_asked_for_names_what_has_no_title(tmp_path):
    files = {"anna.ipynb": notebook(*ALL, title="Homework"), "carl.ipynb": notebook("1")}
    rows = graded(tmp_path, files, "03")
    found = [(row["student"], row["lesson"], row["status"]) for row in rows]
    assert found == [*[("anna", "03", "passed")] * 4, ("carl", "03", "missing")]
