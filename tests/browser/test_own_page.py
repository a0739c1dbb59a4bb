"""A learner's own model as one file: opened from the disk, offline, stepped and clicked."""

import re
from types import SimpleNamespace

import pytest
import torch

from tests.explorables.conftest import show, tab
from tests.explorables.forward_pass import Pass, forward_pass, three_digits
from tests.explorables.shown import Shown
from tests.mine.test_export import SOURCES, small_translator
from transformer_lesson import mine
from transformer_lesson.experiments import size_and_text
from transformer_lesson.generation import generate
from transformer_lesson.text.tokenizers import CharacterTokenizer

pytestmark = pytest.mark.browser
__all__ = ["show", "tab"]  # fixtures here, too

SENTENCE, OTHER = SOURCES[0], SOURCES[1]
TOLD = re.compile(r"Step \d+ of \d+, (\S+) \(.* of “[^”]+” is (-?[\d.]+(?:e[-+]?\d+)?):")


@pytest.fixture(scope="module")
def own():
    torch.manual_seed(2)
    return small_translator()


@pytest.fixture
def shown(show, own, tmp_path):
    """The file that `mine.page` writes, opened without a network."""
    writer = SimpleNamespace(save_html=lambda path: mine.page(path, SENTENCE, *own))
    shown = show(writer, viewport={"width": 1100, "height": 900})
    assert [one.name for one in tmp_path.iterdir()] == ["explorable.html"]
    return shown


def passed(own, text: str, written: int) -> Pass:
    """The package's forward pass over what the page shows."""
    model, tokenizer = own[0].as_the_packages(), own[1]
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    ids = [tokenizer.bos_id, *generate(model, source, 12).ids[0][:written]]
    return forward_pass(model, {"source": source, "target": ids})


def told(shown: Shown, own, text: str) -> tuple[str, int, float]:
    """Return the quantity, the row and the number that the page tells of; it is the package's."""
    name, number = TOLD.search(shown.said).groups()
    value = passed(own, text, shown.get("written")).values[name]
    head, row, column = (shown.get(one) for one in ("head", "row", "number"))
    rows = value[min(head, len(value) - 1)] if value.dim() == 3 else value
    row, column = min(row, len(rows) - 1), min(column, rows.size(1) - 1)
    assert three_digits(float(number), rows[row, column].item())
    return name, row, float(number)


def test_it_is_stepped_and_clicked(shown, own):
    click = shown.page.get_by_role
    opened = told(shown, own, SENTENCE)
    assert opened[:2] == ("decoder.1.cross_attention.weights", 2)
    click("button", name=": decoder.1.cross_attention.heads").click()
    stepped = told(shown, own, SENTENCE)
    assert stepped[:2] == ("decoder.1.cross_attention.heads", 2)
    click("button", name="encoder block 0, self-attention").press("Enter")
    click("button", name="9: encoder.0.after_attention").click()
    click("button", name="row 4, ").first.click()
    clicked = told(shown, own, SENTENCE)
    assert clicked[:2] == ("encoder.0.after_attention", 4)
    shown.page.get_by_label("Text").fill(OTHER)
    typed = told(shown, own, OTHER)
    assert typed[:2] == clicked[:2]
    assert len({number for *_, number in (opened, stepped, clicked, typed)}) == 4


def test_its_words_and_weights_are_the_learners(shown, own):
    model, tokenizer = own
    told = [words for words in shown.told() if words.startswith("row ")][-3:]
    rows = [words.split("“")[1].split("”")[0] for words in told]
    ids = generate(model, [*tokenizer.encode(SENTENCE), tokenizer.eos_id], 2).ids[0]
    assert rows == [tokenizer.token(id_) for id_ in (tokenizer.bos_id, *ids)]
    shown.set(step=99)
    assert shown.title.startswith("After “" + " ".join(rows) + "” comes")


def test_a_gpt_has_a_page_too(show):
    tokenizer = CharacterTokenizer.train(["a value of a type"])
    model = size_and_text.build(tokenizer.vocab_size, d_model=8).eval()
    writer = SimpleNamespace(save_html=lambda path: mine.page(path, "a type", model, tokenizer))
    page = show(writer)
    page.set(step=99)
    assert "t y p e" in page.title
