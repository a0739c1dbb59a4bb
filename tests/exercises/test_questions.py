"""Questions keep their form; their widget: choose, commit, read."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.lessons import cells, each_notebook, source
from transformer_lesson.exercises import predict
from transformer_lesson.exercises.engine import question_bank
from transformer_lesson.exercises.engine.predictions import Prediction, to_html
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.exercises.engine.question_bank import Option, Question, load_questions

FILES = sorted(Path(question_bank.__file__).parents[1].glob("questions/*.toml"))


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


@each_notebook
def test_lesson_asks_every_one_of_its_questions_once(path):
    asked = re.findall(r'predict\("([^"]+)"\)', "\n".join(map(source, cells(path, "code"))))
    own = [name for name in load_questions() if name.startswith(f"{path.name[:2]}.")]
    assert sorted(asked) == sorted(own)
    assert len(own) >= 3


def test_right_answers_stand_at_several_places_and_an_unknown_question_gets_its_likeliest_name():
    places = [[o.right for o in q.options].index(True) for q in load_questions().values()]
    assert max(map(places.count, set(places))) <= len(places) * 2 / 3
    with pytest.raises(ValueError, match="03.softmax_axis"):
        predict("03.softmax_axes")


HOSTILE = Question(
    "99.hostile",
    "What does <script>alert(1)</script> in `a < b` do?",
    (
        Option("`x.view(2)` & <b>more</b>", "It is <i>shown</i>, not run.", right=True),
        Option("It runs", "`html.escape` keeps it from running."),
        Option("Nothing", "You see it in the question."),
    ),
)


def commit(prediction, index):
    prediction.options.index = index
    prediction.commit.click()
    return prediction.feedback.value


@pytest.mark.slow
@pytest.mark.parametrize("name", load_questions())
def test_nothing_is_given_away_at_first_and_every_choice_gets_its_own_explanation(name):
    prediction = predict(name)
    assert prediction.options.index is None
    assert prediction.feedback.value == '<div role="status"></div>'
    for option in prediction.question.options:
        assert all(to_html(option.explanation) not in w.value for w in prediction.children[::3])
    answer = prediction.question.answer
    for index, option in enumerate(prediction.question.options):
        feedback = commit(predict(name), index)
        assert to_html(option.explanation) in feedback
        assert to_html(answer.explanation) in feedback
        assert ("✗" in feedback) is not option.right
        assert 'role="status"' in feedback


def test_commit_asks_for_a_choice_locks_it_and_says_where_it_cannot_be_kept(tmp_path, monkeypatch):
    prediction = Prediction(HOSTILE)
    prediction.commit.click()
    assert "Choose an answer first" in prediction.feedback.value
    assert not prediction.commit.disabled
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "a file" / "<i>.json"))
    shown = commit(prediction, 0)
    assert prediction.options.disabled and prediction.commit.disabled
    assert "Progress could not be written to" in shown and "&lt;i&gt;.json" in shown


def test_text_is_escaped_and_backticks_become_code():
    prediction = Prediction(HOSTILE)
    page = prediction._repr_mimebundle_()["text/markdown"] + commit(prediction, 1)
    page += prediction.children[0].value
    assert "<script>" not in page and "<b>more" not in page
    assert "<code>a &lt; b</code>" in page
    assert prediction.options.options[0] == "x.view(2) & <b>more</b>"


def test_viewers_without_a_kernel_get_the_question_and_folded_answers():
    prediction = predict("03.softmax_axis")
    bundle = prediction._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == repr(prediction)
    assert repr(prediction).startswith("Predict 03.softmax_axis: Attention weights")
    question, answers = bundle["text/markdown"].split("<details>")
    for option in prediction.question.options:
        assert to_html(option.text) in question
        assert option.explanation not in question
        assert to_html(option.explanation) in answers
    assert bundle == prediction._repr_mimebundle_()
