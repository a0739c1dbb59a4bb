"""The inventory: its questions are fair and lead where they say; its widget keeps every answer."""

import re
from collections import Counter

import pytest

from tests.stored_lessons import cells, lesson, source
from tools.lesson_files import NOTEBOOKS
from transformer_lesson.course import DEEPER
from transformer_lesson.exercises import gain, inventory
from transformer_lesson.exercises.engine.catalog import LESSONS, find
from transformer_lesson.exercises.engine.inventory import asked, by_topic, given, load_items
from transformer_lesson.exercises.engine.progress import (
    progress_file,
    read_progress,
    remember,
)
from transformer_lesson.exercises.engine.question_bank import load_questions
from transformer_lesson.exercises.engine.question_card import UNKNOWN
from transformer_lesson.exercises.engine.reports import to_html
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.intervals import wilson

ITEMS = load_items()
pytestmark = pytest.mark.usefixtures("folder")
WRONG = [option for item in ITEMS for option in item.options if not option.right]


def test_thirty_questions_of_four_options_and_ten_of_them_one_a_topic_also_before():
    assert len(ITEMS) == len({item.id for item in ITEMS}) == 30
    topics = dict.fromkeys((item.topic for item in ITEMS), 1)
    assert Counter(item.topic for item in asked("before")) == topics
    assert asked("after") == ITEMS and len(asked("before")) == 10
    for item in ITEMS:
        assert len({option.text for option in item.options}) == 4
        assert [option.right for option in item.options].count(True) == 1
    with pytest.raises(ValueError, match="'later'"):
        asked("later")
    shown = {question.text for question in load_questions().values()}
    assert not shown & {item.text for item in ITEMS}  # none is answered by a lesson word for word


def test_wilsons_interval_is_as_published():
    for counts, ends in {(0, 1): (0.0, 0.7935), (10, 100): (0.0552, 0.1744)}.items():
        assert wilson(*counts) == pytest.approx(ends, abs=1e-4)
    with pytest.raises(ValueError, match="at least one"):
        wilson(0, 0)


@pytest.mark.slow
def test_each_wrong_option_is_a_mistake_of_the_diagnosis_or_leads_to_its_lesson():
    assert sum(bool(option.turn) for option in WRONG) >= 40
    for option in WRONG:
        assert option.lesson in LESSONS
        behind = [NOTEBOOKS / one.file for one in DEEPER.values() if one.lesson == option.lesson]
        prose = [
            cell for path in (lesson(option.lesson), *behind) for cell in cells(path, "markdown")
        ]
        heads = re.findall(r"(?m)^#+ (?:\d+ · )?(.+)$", "\n".join(map(source, prose)))
        assert option.section in heads, (option.lesson, option.section)
        if option.turn:
            exercise, turn = option.turn.split(": ")
            assert turn in words(find(exercise).name), option.turn
    assert all(option.lesson == "" and option.turn == "" for option in (i.answer for i in ITEMS))


def answer(view, right: bool) -> None:
    """Answer the next question, as the page does."""
    places = [option.right for option in view.options[len(view.answers)]]
    view.answers = [*view.answers, places.index(right)]


def test_one_question_at_a_time_without_a_verdict_goes_on_where_it_stopped():
    view = inventory("before")
    assert {key for one in view.questions for option in one["options"] for key in option} == {
        "text"
    }
    for number in range(4):
        answer(view, right=number % 2 == 0)
        assert view.end == ""
    view = inventory("before")  # the cell once more, on another day
    assert view.questions[0]["text"].startswith("<b>Question 5 of 10.</b>")
    view.answers = [UNKNOWN] * 2
    view.answers = [UNKNOWN] * 6  # the kernel was busy, and hears of four at once
    assert "2 of 10 right" in view.end and "lesson 08, Training" in view.end
    for item in view.items:  # the same questions come again
        assert to_html(item.answer.says) not in view.end
    assert inventory("before").end == view.end and inventory("before").questions == []


@pytest.mark.slow
def test_afterwards_each_mistake_is_put_right_and_the_gain_is_drawn():
    example = gain()
    assert "not your answers" in example.get_suptitle() and example.alt.startswith("An example")
    for when in ("before", "after"):
        view = inventory(when)
        for item in view.items:
            answer(view, right=when == "after" and item.id != "cache")
    assert "29 of 30 right" in view.end and view.end.count("<li>") == 1
    chosen = view.given["cache"]
    assert to_html(chosen.says) in view.end and to_html(chosen.section) in view.end
    assert gain().get_suptitle().endswith(": 0 of 10 right before, 10 of 10 after")
    assert "writing 0 of 1 → 2 of 3;" in gain().alt


def test_only_answers_to_questions_that_were_asked_count():
    remember("predicted", "before.letters", {"chose": ITEMS[0].answer.text, "right": False})
    remember("predicted", "before.temperature", {"chose": ["a list"]})
    remember("predicted", "before.added", {"chose": "an earlier wording"})
    remember("predicted", "before.gradient_rows", {"chose": ITEMS[1].answer.text})  # asked after
    remember("predicted", "after.letters", {})
    predicted = read_progress(progress_file())["predicted"]
    assert given(predicted, "before") == {"letters": ITEMS[0].answer}
    assert given(predicted, "after") == {}
    assert by_topic(predicted)["tokens"] == ((1, 1), (0, 0))


def test_viewers_without_a_kernel_get_the_questions_and_no_answers():
    bundle, _ = inventory("before")._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    for item in asked("before"):
        assert to_html(item.text) in bundle["text/markdown"]
        assert to_html(item.answer.says) not in bundle["text/markdown"]
