"""Questions keep their form; what a page and a kernel get of them."""

import json
import math
import re
from collections import Counter

import pytest
from lxml import html

from tests.stored_lessons import cells, each_notebook, source
from transformer_lesson.exercises import predict
from transformer_lesson.exercises.engine.inventory import load_items
from transformer_lesson.exercises.engine.predictions import Prediction, to_html
from transformer_lesson.exercises.engine.progress import (
    PLACE,
    STORED_SEED,
    learners_seed,
    progress_file,
    read_progress,
)
from transformer_lesson.exercises.engine.question_bank import Option, Question, load_questions
from transformer_lesson.exercises.engine.question_card import shuffled


def test_each_question_is_complete():
    for question in load_questions().values():
        options = question.options
        assert sum(option.right for option in options) == 1 and len(options) >= 3
        assert len({option.text.replace("`", "") for option in options}) == len(options)
        assert question.text.endswith("?") and all(option.explanation for option in options)
        for text in (question.text, *(t for one in options for t in (one.text, one.explanation))):
            assert text.count("`") % 2 == 0 and "$" not in text
            assert not re.search(r"\*\w", text), f"shown as it is, with its asterisks: {text}"


@each_notebook
def test_lesson_asks_every_one_of_its_questions_once(path):
    asked = re.findall(r'predict\("([^"]+)"\)', "\n".join(map(source, cells(path, "code"))))
    notebook = path.stem if path.parent.name == "deeper" else path.name[:2]
    own = [name for name in load_questions() if name.startswith(f"{notebook}.")]
    assert sorted(asked) == sorted(own)


def by_chance(seen: float, expected: float) -> bool:
    """Whether a count lies within two standard errors of chance."""
    return abs(seen - expected) <= 2 * math.sqrt(expected) + 1


ASKED = {name: question.options for name, question in load_questions().items()}
INVENTORY = {f"after.{item.id}": item.options for item in load_items()}


@pytest.mark.parametrize("seed", [STORED_SEED, 1, 271828])
@pytest.mark.parametrize("asked", [ASKED, INVENTORY], ids=["in lessons", "inventory"])
def test_neither_place_nor_length_gives_the_right_option_away(asked, seed):
    shown = [shuffled(options, name, seed) for name, options in asked.items()]
    rights = Counter([option.right for option in options].index(True) for options in shown)
    for place in range(max(map(len, shown))):
        chance = sum(1 / len(options) for options in shown if place < len(options))
        assert by_chance(rights[place], chance), place
    for end in (min, max):
        seen = chance = 0.0
        for options in shown:
            lengths = [len(option.text.replace("`", "")) for option in options]
            (right,) = [len(option.text.replace("`", "")) for option in options if option.right]
            seen += right == end(lengths)
            chance += lengths.count(end(lengths)) / len(options)
        assert by_chance(seen, chance), end


def test_each_learner_has_an_order_of_their_own_and_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    names = list(load_questions())[:20]
    orders = {seed: [predict(name).options for name in names] for seed in ["nobody's"]}
    assert orders["nobody's"] == [predict(name).options for name in names]
    predict(names[0]).answers = [0]
    seed = learners_seed()
    assert STORED_SEED < seed == json.loads((tmp_path / "my_progress.json").read_text())["seed"]
    mine = [predict(name).options for name in names]
    assert mine != orders["nobody's"] and mine == [predict(name).options for name in names]
    predict(names[1]).answers = [1]
    assert learners_seed() == seed
    (tmp_path / "my_progress.json").write_text("{}")
    assert learners_seed() == STORED_SEED


HOSTILE = Question(
    "99.hostile",
    "What does <script>alert(1)</script> in `a < b` do?",
    (
        Option("`x.view(2)` & <b>more</b>", "It is <i>shown</i>, not run.", right=True),
        Option("It runs", "`html.escape` keeps it from running."),
        Option("Nothing", "You see it in the question."),
    ),
)


def test_the_page_gets_every_option_with_its_own_explanation_and_runs_none():
    prediction = Prediction(HOSTILE)
    (asked,), (options,) = prediction.questions, prediction.options
    assert sorted(options, key=hash) == sorted(HOSTILE.options, key=hash)
    for shown, option in zip(asked["options"], options, strict=True):
        assert shown["text"] == to_html(option.text) and shown["right"] is option.right
        assert to_html(option.explanation) in shown["told"]
    page = prediction.folded() + str(prediction.questions)
    assert "<script>" not in page and "<b>more" not in page
    assert "<code>a &lt; b</code>" in page and "<code>x.view(2)</code>" in page


def test_a_choice_is_kept_and_where_it_cannot_be_kept_the_card_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    prediction = Prediction(HOSTILE)
    chosen = prediction.options[0][1]
    prediction.answers = [1]
    kept = read_progress(progress_file())["predicted"]
    assert kept == {"99.hostile": {"chose": chosen.text, "right": chosen.right}}
    assert prediction.note == ""
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "a file" / "<i>.json"))
    prediction = Prediction(HOSTILE)
    prediction.answers = [0]
    assert "Progress could not be written to" in prediction.note
    assert "&lt;i&gt;.json" in prediction.note


def test_viewers_without_a_kernel_get_options_that_open_one_by_one():
    prediction = predict("03.two_nouns")
    data, metadata = prediction._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert repr(prediction).startswith("Predict 03.two_nouns: In the head that we built by hand")
    page = html.fromstring(data["text/markdown"])
    (options,) = prediction.options
    for fold, option in zip(page.xpath("//details"), options, strict=True):
        sign = "✓ Right." if option.right else "✗ No."
        told = f"{option.text}{sign} {option.explanation}".replace("`", "")
        assert fold.get("open") is None and fold.text_content() == told
    in_sight = [*page.xpath("//p")[:1], *page.xpath("//summary")]
    assert "✓" not in "".join(one.text_content() for one in in_sight)
    assert (data, metadata) == prediction._repr_mimebundle_()
