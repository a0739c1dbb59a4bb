"""The trained translator that lesson 00 loads: the file it was committed as, and how good it is."""

import hashlib

import pytest

from transformer_lesson.checkpoints.translator import TRANSLATOR, trained_translator
from transformer_lesson.generation import exact_match, translate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.text import grammar


@pytest.fixture(scope="module")
def translator():
    model, tokenizer, training = trained_translator()
    assert training is None  # only what is needed to use it
    return model, tokenizer


def test_the_file_is_the_one_that_was_committed_and_small():
    recorded, name = (TRANSLATOR.parent / "SHA256SUMS").read_text().split()
    assert name == TRANSLATOR.name and TRANSLATOR.stat().st_size < 5_000_000
    assert hashlib.sha256(TRANSLATOR.read_bytes()).hexdigest() == recorded


def right(translator, pairs, *strategy) -> float:
    written = translate(*translator, [pair.source for pair in pairs], *strategy)
    return exact_match(written, [pair.target for pair in pairs])


def test_it_translates_every_example_and_a_head_finds_the_words_that_belong_together(translator):
    assert right(translator, grammar.examples().values()) == 1
    hits = alignment_hits(*translator, grammar.splits(0, 100, seed=11).unseen)
    assert hits.max() >= 0.85


@pytest.mark.slow
def test_it_translates_what_it_never_saw_and_its_words_are_those_of_the_corpus(translator):
    """Another seed than its training's; so a sentence may be one of its 24,000, few are."""
    splits = grammar.splits(0, 100, seed=11)
    for pairs in (splits.unseen, splits.combinations):
        assert right(translator, pairs) >= 0.95
    text = " ".join(pair.source + " " + pair.target for pair in grammar.generate(3000, 1))
    assert set(text.split()) <= set(translator[1].vocabulary)
