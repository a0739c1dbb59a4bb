"""Hostile text through what shows text: never an exception, never markup, never long.

What explorables make of it is seen in a page, in `tests/browser/test_hostile_page.py`.
"""

import json
import time
import warnings
from html.parser import HTMLParser

import pytest
import torch

from tests.explorables.tiny_models import translator
from tests.patience import AT_ONCE
from tests.security.hostile_texts import TEXTS
from transformer_lesson import explorables
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.figures import plots
from transformer_lesson.figures.attention_view.view import head_view, model_view
from transformer_lesson.text import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer, CharacterTokenizer, WordTokenizer
from transformer_lesson.training import StepReport

pytestmark = pytest.mark.slow


@pytest.fixture(params=TEXTS.values(), ids=TEXTS)
def text(request):
    """One hostile text; whatever is done with it must be quick and without a warning."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", ResourceWarning)  # of what others left
        yield request.param
    assert time.process_time() - begun < AT_ONCE


class Page(HTMLParser):
    def __init__(self, source: str):
        super().__init__()
        self.tags = []
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, {name for name, _ in attributes}))


def sendable(value) -> None:
    json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize("view", [head_view, model_view])
def test_attention_views_show_any_words(view, text):
    shown = view([torch.full((1, 2, 3, 3), 1 / 3)], [text, "b", text])
    (frame,) = Page(shown.html).tags
    assert frame == ("iframe", {"title", "sandbox", "style", "srcdoc"})
    bundle, metadata = shown._repr_mimebundle_()
    sendable([bundle["text/plain"], metadata, shown.html])
    assert len(shown.html) < 1_000_000


PLOTS = {
    "heatmap": lambda t: plots.heatmap(
        torch.ones(2, 2), t, t, x_labels=[t, t], y_labels=[t, t], x_name=t, y_name=t
    ),
    "attention_map": lambda t: plots.attention_map(torch.ones(2, 2), [t, t], [t, t], t),
    "curves": lambda t: plots.curves({t: [1, 2], "b": [2, 1]}, t, t, x_name=t, y_name=t),
    "figure": lambda t: plots.figure(t, t)[0],
}


@pytest.mark.everything
@pytest.mark.parametrize("name", PLOTS)
def test_figures_carry_any_labels(name, text):
    data, metadata = PLOTS[name](text)._repr_mimebundle_()
    sendable([data["text/plain"], metadata])
    assert 1000 < len(data["image/png"]) < 500_000


class Hostile:
    """An answer's result whose every text is hostile."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    __str__ = __format__ = lambda self, *_: self.text


def answers(text: str):
    def raises(x, n_heads):
        raise ValueError(text)

    def raises_hostile(x, n_heads):
        raise type("Error", (Exception,), {"__str__": lambda self: text})()

    def prints(x, n_heads):
        print(text)
        return x

    def named(x, n_heads):
        return type(text.replace("\0", "") or "x", (), {})()

    return [raises, raises_hostile, prints, named, lambda x, n_heads: Hostile(text)]


def assert_inert(report: Report, and_tags: set = frozenset()) -> None:
    tags = {tag for tag, _ in Page(report._repr_html_()).tags}
    assert tags <= {"div", "strong", "code", "pre", "br", *and_tags}
    sendable([report._repr_html_(), repr(report)])


def test_reports_quote_any_answer(text):
    for answer in answers(text):
        report = check("split_heads", answer)
        assert report.status == "failed"
        assert_inert(report, {"details", "summary"})
        assert len(report.message) < 6000
        assert all(c.isprintable() or c in "\n\t\u200c\u200d" for c in repr(report))


def test_a_report_of_any_text_is_inert(text):
    assert_inert(Report(text, "failed", f"{text} `{text}`\n{text}", text))


@pytest.mark.parametrize("kind", [WordTokenizer, CharacterTokenizer, BytePairTokenizer])
def test_tokenizers_take_any_text_or_say_why_not(kind, text):
    known = kind.train(["some text"])
    try:
        text.encode()
    except UnicodeEncodeError:
        for call in (known.encode, known.tokens, lambda t: kind.train([t])):
            with pytest.raises(ValueError, match="half of a surrogate pair") as caught:
                call(text)
            sendable(str(caught.value))
        return
    tokens, ids = known.tokens(text[:1000]), known.encode(text[:1000])
    assert len(tokens) == len(ids) and set(ids) <= set(range(known.vocab_size))
    assert all(token and token.isprintable() and " " not in token for token in tokens)
    known.decode(known.encode(text, add_special=True))
    if text.strip():
        learned = kind.train([text[:10_000]])
        assert learned.encode(text) and learned.to_json().isascii()


def test_a_recorded_run_keeps_any_words(text, monkeypatch):
    model, tokenizer = translator()
    monkeypatch.setattr(tokenizer, "token", lambda id_: text)
    pair = Pair("the cat sees the dog .", "die Katze sieht den Hund .", ())
    recorder = explorables.ReplayRecorder(tokenizer, pair)
    recorder(StepReport(1, 1.0, 0.0, 0.0, 0.0, None, model))
    shown = explorables.TrainingReplay(recorder.snapshots)
    json.dumps(shown.get_state(), default=str, ensure_ascii=False).encode()
    plain = shown._repr_mimebundle_()[0]["text/plain"]
    assert len(plain) < 500 and plain.isprintable()
