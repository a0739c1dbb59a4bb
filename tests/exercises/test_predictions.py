"""The widget behind `predict`: choose, commit, read."""

import subprocess
import sys

import pytest

from transformer_lesson.exercises import predict
from transformer_lesson.exercises.engine.predictions import Prediction, to_html
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.exercises.engine.question_bank import Option, Question, load_questions

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


@pytest.mark.parametrize("name", load_questions())
def test_nothing_is_chosen_or_given_away_at_first(name):
    prediction = predict(name)
    assert prediction.options.index is None
    assert prediction.feedback.value == '<div role="status"></div>'
    for option in prediction.question.options:
        assert all(to_html(option.explanation) not in w.value for w in prediction.children[::3])


@pytest.mark.slow
@pytest.mark.parametrize("name", load_questions())
def test_every_choice_gets_its_own_explanation(name):
    answer = predict(name).question.answer
    for index, option in enumerate(predict(name).question.options):
        feedback = commit(predict(name), index)
        assert to_html(option.explanation) in feedback
        assert to_html(answer.explanation) in feedback
        assert ("✗" in feedback) is not option.right
        assert 'role="status"' in feedback


def test_commit_without_a_choice_asks_for_one():
    prediction = predict("03.softmax_axis")
    prediction.commit.click()
    assert "Choose an answer first" in prediction.feedback.value
    assert not prediction.commit.disabled


def test_commit_locks_the_choice():
    prediction = predict("03.softmax_axis")
    commit(prediction, 0)
    assert prediction.options.disabled and prediction.commit.disabled


def test_progress_that_cannot_be_kept_is_said_below_the_answer(tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "a file" / "<i>.json"))
    shown = commit(Prediction(HOSTILE), 0)
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
    assert bundle["text/plain"].startswith("Predict 03.softmax_axis: Attention weights")
    question, answers = bundle["text/markdown"].split("<details>")
    for option in prediction.question.options:
        assert to_html(option.text) in question
        assert option.explanation not in question
        assert to_html(option.explanation) in answers
    assert bundle == prediction._repr_mimebundle_()
    assert (
        bundle["text/markdown"] == predict("03.softmax_axis")._repr_mimebundle_()["text/markdown"]
    )


@pytest.mark.slow
def test_ipywidgets_loads_only_when_something_is_predicted():
    code = (
        "import sys; from transformer_lesson.exercises import check, predict; "
        "before = 'ipywidgets' in sys.modules; predict('03.softmax_axis'); "
        "print(before, 'ipywidgets' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
