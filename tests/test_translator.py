"""The trained translator that lesson 00 loads: the file it was committed as, and how good it is."""

import hashlib

import pytest

from transformer_lesson.checkpoints.translator import TRANSLATOR, trained_translator
from transformer_lesson.generation import exact_match, translate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.text import grammar

N = 100


@pytest.fixture(scope="module")
def translator():
    model, tokenizer, training = trained_translator()
    assert training is None  # only what is needed to use it
    return model, tokenizer


def test_the_file_is_the_one_that_was_committed():
    recorded, name = (TRANSLATOR.parent / "SHA256SUMS").read_text().split()
    assert name == TRANSLATOR.name
    assert hashlib.sha256(TRANSLATOR.read_bytes()).hexdigest() == recorded


def test_it_is_small():
    assert TRANSLATOR.stat().st_size < 5_000_000


def test_it_translates_every_example(translator):
    examples = grammar.examples().values()
    written = translate(*translator, [pair.source for pair in examples])
    assert written == [pair.target for pair in examples]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["unseen", "combinations"])
def test_it_translates_what_it_never_saw(translator, part):
    """Another seed than its training's; so a sentence may be one of its 24,000, few are."""
    pairs = getattr(grammar.splits(0, N, seed=11), part)
    written = translate(*translator, [pair.source for pair in pairs])
    assert exact_match(written, [pair.target for pair in pairs]) >= 0.95


def test_a_head_finds_the_words_that_belong_together(translator):
    hits = alignment_hits(*translator, grammar.splits(0, N, seed=11).unseen)
    assert hits.max() >= 0.85


@pytest.mark.slow
def test_its_words_are_those_of_the_corpus(translator):
    text = " ".join(pair.source + " " + pair.target for pair in grammar.generate(3000, 1))
    assert set(text.split()) <= set(translator[1].vocabulary)
