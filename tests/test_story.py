"""Lessons 00 to 10 and 12 as a learner meets them: questions before answers, and honest minutes."""

import json
import re
from pathlib import Path

import pytest

from transformer_lesson.exercises.engine.question_bank import find_question
from transformer_lesson.lessons import LESSONS

ROOT = Path(__file__).parent.parent
STORY = [f"{number:02}" for number in (*range(11), 12)]
each_lesson = pytest.mark.parametrize("number", STORY)

WORDS, LINES = 180, 6  # that a learner reads in a minute
PREDICTION, PICTURE, EXERCISE = 0.7, 1, 4  # minutes
MOST = 40  # minutes of a core
LONGER = {"07": 42, "08": 50, "09": 45, "10": 42, "12": 55}
"""Minutes of cores in which models are computed step by step, trained, decoded and opened."""
DEEPER = re.compile("#+ Dig deeper")


def cells(number: str) -> list[dict]:
    path = ROOT / "notebooks" / LESSONS[number].file
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def hidden(cell: dict, what: str) -> bool:
    return cell["metadata"].get("jupyter", {}).get(f"{what}_hidden", False)


def asked(cell: dict) -> str | None:
    found = re.match(r'predict\("([^"]+)"\)', source(cell))
    return found and found[1]


def seen(cell: dict) -> str:
    """What a reader sees who opens nothing, without what predictions and solutions unfold."""
    if cell["cell_type"] == "markdown":
        return re.sub(r"<details>.*?</details>", "", source(cell), flags=re.DOTALL)
    if re.match(r"(predict|hint|solution)\(", source(cell)):
        return ""
    text = "" if hidden(cell, "source") else source(cell)
    for output in [] if hidden(cell, "outputs") else cell["outputs"]:
        text += "\n" + "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
    return text


def plain(text: str) -> str:
    """Words and numbers in small letters, one blank between two of them."""
    return " ".join(re.findall(r"[\w.,%]*\w%?", text.lower()))


def telling(question) -> list[str]:
    """The right option, if it is longer than three words, and its numbers that no other one has."""
    others = " ".join([question.text, *(o.text for o in question.options if not o.right)])
    numbers = re.findall(r"\d[\d.,]*\d", question.answer.text)
    told = [number for number in numbers if number not in others]
    return [plain(question.answer.text)][: len(question.answer.text.split()) > 3] + told


@each_lesson
def test_nothing_answers_a_prediction_before_it(number):
    before = ""
    for cell in cells(number):
        if name := asked(cell):
            assert [text for text in telling(find_question(name)) if text in before] == [], name
        before += " " + plain(seen(cell))


@each_lesson
def test_what_answers_a_prediction_is_folded(number):
    lesson = cells(number)
    for i, cell in enumerate(lesson):
        if asked(cell):
            answer = next(c for c in lesson[i + 1 :] if c["cell_type"] == "code")
            assert hidden(answer, "source") and hidden(answer, "outputs"), asked(cell)


def minutes(lesson: list[dict]) -> float:
    """How long a learner needs for cells of which they open nothing but the predictions."""
    spent = 0.0
    for cell in lesson:
        if cell["cell_type"] == "markdown":
            spent += len(re.findall(r"[^\W\d_][\w'-]*", seen(cell))) / WORDS
            continue
        code = source(cell)
        if asked(cell):
            spent += PREDICTION
        elif code.startswith("check("):
            spent += EXERCISE
        elif not hidden(cell, "source") and "exercise" not in cell["metadata"].get("tags", []):
            spent += sum(map(bool, map(str.strip, code.splitlines()))) / LINES
        if "ArchitectureMap(" not in code:  # a signpost
            spent += PICTURE * any("image/png" in o.get("data", {}) for o in cell["outputs"])
    return spent


@each_lesson
def test_minutes_are_honest(number):
    lesson = cells(number)
    ends = [i for i, cell in enumerate(lesson) if DEEPER.match(source(cell))]
    core = lesson[: ends[0]] if ends else lesson
    said = int(re.search(r"\*\*Minutes:\*\* (\d+)", source(lesson[0]))[1])
    assert said == LESSONS[number].minutes
    assert minutes(core) <= LONGER.get(number, MOST)
    assert abs(minutes(core) - said) <= 3, f"{minutes(core):.1f} minutes"
