"""Questions keep their form, and what they call right is what the package does."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tools.lesson_files import lesson_files
from transformer_lesson.exercises import predict
from transformer_lesson.exercises.engine import question_bank
from transformer_lesson.exercises.engine.question_bank import load_questions

ROOT = Path(__file__).parents[2]
NOTEBOOKS = lesson_files()
FILES = sorted(Path(question_bank.__file__).with_name("questions").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file_holds_questions_and_nothing_unknown(file):
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    assert set(data) == {"question"}
    assert len(data["question"]) >= 3
    names = [question["id"] for question in data["question"]]
    assert len(set(names)) == len(names)
    for question in data["question"]:
        assert set(question) == {"id", "text", "option"}
        for option in question["option"]:
            assert set(option) <= {"text", "explanation", "right"}


@pytest.mark.parametrize("question", load_questions().values(), ids=lambda q: q.name)
def test_question_is_complete(question):
    options = question.options
    assert len(options) >= 3
    assert sum(option.right for option in options) == 1
    assert len({option.text.replace("`", "") for option in options}) == len(options)
    assert question.text.endswith("?")
    for option in options:
        assert 5 <= len(option.explanation.split()) <= 45
        for text in (question.text, option.text, option.explanation):
            assert text.strip() == text != ""
            assert "$" not in text and "!" not in text
            assert text.count("`") % 2 == 0


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_lesson_asks_every_one_of_its_questions_once(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    asked = re.findall(r'predict\("([^"]+)"\)', code)
    own = [name for name in load_questions() if name.startswith(f"{notebook.name[:2]}.")]
    assert sorted(asked) == sorted(own)
    assert len(own) >= 3


def test_right_answers_are_not_always_at_the_same_place():
    places = [[o.right for o in q.options].index(True) for q in load_questions().values()]
    assert max(map(places.count, set(places))) <= len(places) * 2 / 3


def test_unknown_question_is_an_error_that_suggests_names():
    with pytest.raises(ValueError, match="03.softmax_axis"):
        predict("03.softmax_axes")
