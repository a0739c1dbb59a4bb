"""A learner's own model as one file: opened from the disk, offline, stepped and clicked."""

from types import SimpleNamespace

import pytest
import torch

from tests.explorables.conftest import show, tab
from tests.mine.small_translator import SOURCES, small_translator
from transformer_lesson import mine
from transformer_lesson.generation import generate
from transformer_lesson.lessons.lesson_10 import size_and_text
from transformer_lesson.text.tokenizers import CharacterTokenizer

pytestmark = pytest.mark.browser
__all__ = ["show", "tab"]  # fixtures here, too

SENTENCE = SOURCES[0]


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


def test_its_words_are_the_learners(shown, own):
    model, tokenizer = own[0].as_the_packages(), own[1]
    shown.set(stop=5)
    told = [words for words in shown.told() if words.startswith("row ")]
    rows = [words.split("“")[1].split("”")[0] for words in told]
    source = [*tokenizer.encode(SENTENCE), tokenizer.eos_id]
    ids = [tokenizer.bos_id, *generate(model, source, 2).ids[0]]
    assert rows == list(map(tokenizer.token, ids))
    shown.page.get_by_label("Text").fill(SOURCES[1])
    assert shown.get("text") == SOURCES[1]
    shown.set(stop=0, text=SENTENCE)
    assert f"“{' '.join(rows[1:])}”" in shown.title


def test_a_gpt_has_a_page_too(show):
    tokenizer = CharacterTokenizer.train(["a value of a type"])
    model = size_and_text.build(tokenizer.vocab_size, d_model=8).eval()
    writer = SimpleNamespace(save_html=lambda path: mine.page(path, "a type", model, tokenizer))
    page = show(writer)
    assert "p e" in page.title  # as many of its last tokens as fit
    assert page.page.title() == "explorable: a model of my own, word by word"
