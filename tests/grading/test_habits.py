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
from typing import NamedTuple

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
PLAIN = "from transformer_lesson.lessons.lesson_03.solutions import"
MERGED = f"<<<<<<< HEAD\n{SCORES}\n=======\n{WRONG}\n>>>>>>> theirs"
MOODLE, CANVAS = "%s_1234_assignsubmission_file_hw.ipynb", "%s_LATE_4711_81234_03_attention-1.ipynb"
GOOD = notebook(*ALL, title=TITLE)


class Habit(NamedTuple):
    """What a student did: files by their paths; the verdicts; how the first sentence goes on."""

    files: dict[str, str | bytes]
    verdicts: str
    sentence: str = ""


def cells(*code: str, title: str = TITLE, name: str = "hw.ipynb") -> dict[str, str]:
    return {name: notebook(*code, title=title)}


def changed(**change) -> dict[str, str]:
    return {"hw.ipynb": json.dumps(json.loads(GOOD) | change)}


def with_cells(*more: dict) -> dict[str, str]:
    return changed(cells=[*json.loads(GOOD)["cells"], *more])


def prose(kind: str) -> dict[str, str]:
    made = json.loads(GOOD)
    made["cells"][2] = {"cell_type": kind, "metadata": {}, "source": SCORES}
    return {"hw.ipynb": json.dumps(made)}


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
BOMB = packed({"hw.ipynb": GOOD, "zeros": bytes(250_000_000)})
DEEP = packed({"b.zip": packed({"c.zip": packed({"hw.ipynb": GOOD})})})
WIDGETS = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}}
NO_MORE = "The notebook does not define this function"

HABITS = {
    "right": Habit(cells(*ALL), "PPPP"),
    "handed in as it was": Habit(cells(HEAD, STUB, CHECK), "NMMM"),
    "stub copied below": Habit(cells(HEAD, SCORES, CHECK, STUB, *OTHERS), "PPPP"),
    "stub copied to the end": Habit(cells(*ALL, CHECK_LAST, STUB, CHECK), "PPPP"),
    "typed again at the end": Habit(cells(HEAD, STUB, CHECK, *OTHERS, CHECK_LAST, SCORES), "PPPP"),
    "mended at the end": Habit(cells(HEAD, WRONG, CHECK, *OTHERS, CHECK_LAST, SCORES), "PPPP"),
    "spoiled at the end": Habit(cells(*ALL, WRONG), "FPPF", "dividing by d_head"),
    "helper at the end": Habit(
        cells(
            *ALL[:1],
            SCORES.replace("math.sqrt", "root"),
            *OTHERS,
            CHECK,
            CHECK_LAST,
            "def root(x):\n    return math.sqrt(x)",
        ),
        "PPPP",
    ),
    "imports at the end": Habit(cells(*ALL[1:], CHECK, CHECK_LAST, HEAD), "PPPP"),
    "half": Habit(
        cells(HEAD, STUB.replace("raise", "Q = Q * 1\n    raise"), CAUSAL, PADDING), "NPPM"
    ),
    "syntax error": Habit(
        cells(HEAD, SCORES.replace(")):", "):").replace("-1))", "-1)"), *OTHERS),
        "FPPF",
        "The cells that it needs raised SyntaxError: '\\(' was never closed",
    ),
    "mended below": Habit(cells(HEAD, f"{SCORES})", *OTHERS, SCORES, CHECK), "PPPP"),
    "broken above a stub": Habit(
        cells(HEAD, f"{SCORES})", STUB, *OTHERS),
        "FPPF",
        "The cells that it needs raised SyntaxError",
    ),
    "imported after the check": Habit(
        cells(*ALL, CHECK, CHECK_LAST, "from transformer_lesson.model.attention import *"), "PPPP"
    ),
    "raises": Habit(
        cells(HEAD, SCORES.replace("Q @", "1 / 0 * Q @"), *OTHERS),
        "FPPF",
        "Your function raised ZeroDivisionError",
    ),
    "empty": Habit({"hw.ipynb": notebook(title="")}, "U", "The notebook is empty"),
    "no cells": Habit(changed(cells=[]), "U", "The notebook is empty"),
    "only the title": Habit(cells(), "MMMM", NO_MORE),
    "ours imported": Habit(
        cells(HEAD, "from transformer_lesson.model.attention import attention_scores", *OTHERS),
        "IPPP",
        "It is the package's own function",
    ),
    "our solutions imported": Habit(
        cells(HEAD, f"{PLAIN} *"), "IIII", "It is the package's own function"
    ),
    "from a file beside it": Habit(
        {"w/hw.ipynb": notebook("from answers import *", title=TITLE), "w/answers.py": SCORES},
        "MMMM",
        NO_MORE,
    ),
    "by name from a file": Habit(
        cells("from answers import attention_scores", HEAD, CAUSAL, PADDING),
        "FPPM",
        "The cells that it needs raised ModuleNotFoundError: No module named 'answers'",
    ),
    "a star of no use": Habit(cells("from answers import *", *ALL), "PPPP"),
    "magics": Habit(
        cells("%matplotlib inline\n!pip install x", *ALL[:1], f"%%time\n{SCORES}", *OTHERS), "PPPP"
    ),
    "prints and shows": Habit(
        cells(HEAD, SCORES.replace("return", "print(10**6 * 'x'); display(Q); return"), *OTHERS),
        "PPPP",
    ),
    "asks": Habit(
        cells(HEAD, SCORES.replace("return", "input(); return"), *OTHERS),
        "FPPF",
        "Your function raised (EOF|OS)Error",
    ),
    "exits": Habit(cells(*ALL, "exit()", "import sys; sys.exit(1)"), "PPPP"),
    "exits within": Habit(
        cells(HEAD, SCORES.replace("return", "exit(); return"), *OTHERS),
        "FPPF",
        "Your function raised SystemExit",
    ),
    "clears all names": Habit(cells("globals().clear()", *ALL, "%reset -f\ndel Q"), "PPPP"),
    "builtins as names": Habit(cells("sum = max = 0; list = [1]; print = None", *ALL), "PPPP"),
    "lambda": Habit(
        cells(
            HEAD, STUB, "attention_scores = lambda Q, K: Q @ K.mT / math.sqrt(Q.size(-1))", *OTHERS
        ),
        "PPPP",
    ),
    "merge in a cell": Habit(
        cells(HEAD, MERGED, *OTHERS),
        "FPPF",
        "The cells that it needs raised SyntaxError: the lines <",
    ),
    "merge in the file": Habit(
        {"hw.ipynb": GOOD.replace('{"cells"', '<<<<<<< HEAD\n{"cells"') + "\n>>>>>>> theirs\n"},
        "U",
        "The file holds the lines <<<<<<< and >>>>>>> of a merge",
    ),
    "byte order mark": Habit({"hw.ipynb": b"\xef\xbb\xbf" + GOOD.encode()}, "PPPP"),
    "byte order mark in a cell": Habit(cells(HEAD, f"\ufeff{SCORES}", *OTHERS), "PPPP"),
    "UTF-16": Habit({"hw.ipynb": GOOD.encode("utf-16")}, "PPPP"),
    "empty file": Habit({"hw.ipynb": b""}, "U", "The file is empty: save the notebook"),
    "cut off": Habit(
        {"hw.ipynb": GOOD[:400]}, "U", "The file is not a notebook of version 4, or d"
    ),
    "turned into Markdown": Habit(
        prose("markdown"), "MPPF", "Its code stands in a cell that is no"
    ),
    "turned into raw text": Habit(prose("raw"), "MPPF", "Its code stands in a cell that is no"),
    "version 3": Habit(
        {"hw.ipynb": json.dumps(V3)},
        "U",
        "The file is a notebook of version 3: open it in Jup.* save",
    ),
    "PDF": Habit({"hw.pdf": b"%PDF-1.7"}, "U", "There is no notebook here, only hw.pdf: hand in"),
    "HTML and Python": Habit(
        {"w/hw.html": "<html>", "w/hw.py": SCORES},
        "U",
        "There is no notebook here, only hw.html, hw.py",
    ),
    "a page of GitHub": Habit(
        {"hw.ipynb": "\n<!DOCTYPE html>"}, "U", "The file is a web page: down"
    ),
    "rar": Habit({"hw.rar": b"Rar!"}, "U", "Of archives only zip can be read"),
    "nothing": Habit({"w/.DS_Store": b""}, "U", "There is no notebook here, nothing"),
    "named by a browser": Habit({"hw.ipynb.txt": GOOD}, "PPPP"),
    "named by another": Habit({"hw (1).ipynb.json": GOOD}, "PPPP"),
    "no title": Habit({"03_attention (1).ipynb": notebook(*ALL, title="")}, "PPPP"),
    "neither title nor number": Habit(
        cells(*ALL, title="Homework"), "U", "Neither a title nor the file's name .* LESSON=03"
    ),
    "NaN": Habit(changed(metadata={"a": float("nan"), **WIDGETS}), "PPPP"),
    "no metadata": Habit({"hw.ipynb": json.dumps({"cells": json.loads(GOOD)["cells"]})}, "PPPP"),
    "cells without source": Habit(
        with_cells({"cell_type": "code"}, {}, {"cell_type": "code", "source": None}), "PPPP"
    ),
    "much output": Habit(
        with_cells({"cell_type": "code", "source": [], "outputs": ["x" * 10**7]}), "PPPP"
    ),
    "too much output": Habit(
        with_cells({"cell_type": "code", "source": "", "outputs": ["x" * 20_000_000]}),
        "U",
        "The file is larger than 20 MB: clear its outputs",
    ),
    "zip": Habit({"hw.zip": packed({"hw.ipynb": GOOD})}, "PPPP"),
    "zip of a Mac": Habit(
        {
            "hw.zip": packed(
                {"w/hw.ipynb": GOOD, "__MACOSX/w/._hw.ipynb": b"\0", "w/.DS_Store": b""}
            )
        },
        "PPPP",
    ),
    "zip in a folder": Habit({"w/a.zip": packed({"hw.ipynb": GOOD}), "w/Thumbs.db": b""}, "PPPP"),
    "zip of a zip": Habit({"hw.zip": packed({"b.zip": packed({"hw.ipynb": GOOD})})}, "PPPP"),
    "zip of a zip of a zip": Habit({"hw.zip": DEEP}, "U", "An archive in an archive in an archive"),
    "zip without a notebook": Habit(
        {"hw.zip": packed({"hw.pdf": b""})}, "U", "There is no notebook here, only hw.pdf"
    ),
    "zip cut off": Habit(
        {"hw.zip": packed({"hw.ipynb": GOOD})[:99]}, "U", "The archive is damaged or"
    ),
    "zip with a password": Habit({"hw.zip": encrypted()}, "U", "The archive is encrypted: pack it"),
    "zip that leads out": Habit(
        {"hw.zip": packed({"../../hw.ipynb": GOOD})}, "U", "The archive holds a path that leads out"
    ),
    "zip with a link": Habit(
        {"hw.zip": packed({"hw.ipynb": "/etc/passwd"}, stat.S_IFLNK | 0o777)},
        "U",
        "The archive holds a link",
    ),
    "zip bomb": Habit({"hw.zip": BOMB}, "U", "The archive would unpack to 250 MB, over 100 times"),
    "zip of thousands": Habit(
        {"hw.zip": packed({f"{i}.ipynb": "" for i in range(10_001)})},
        "U",
        "The archive has more than 10,000 files",
    ),
}
LETTERS = dict(P="passed", F="failed", I="imported", N="not attempted", M="missing")


def graded(folder: Path, files: dict[str, str | bytes], *options: str) -> list[dict[str, str]]:
    """The table of a folder with these files, graded in this process."""
    for name, content in files.items():
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
