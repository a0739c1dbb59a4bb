"""An encoder says each word in German; what is left out of its blocks is what the name says."""

import math

import pytest
import torch

from transformer_lesson.text import grammar
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import word_for_word
from transformer_lesson.training.word_for_word import BRANCHES, german_of_each_word, word_batches

PAIRS = grammar.generate(40, 0)
TOKENIZER = WordTokenizer.train([text for pair in PAIRS for text in pair[:2]])
OPENS = grammar.examples()["separable verb"]


def test_under_a_word_stands_the_first_german_one_aligned_with_it_or_padding():
    assert OPENS.source == "the child opens the window ."
    assert german_of_each_word(OPENS) == ["das", "Kind", "macht", "das", "Fenster", "."]
    assert german_of_each_word(Pair("a b", "c", ((1, 0),))) == ["", "c"]
    for ((ids,), labels), pair in zip(word_batches(PAIRS, TOKENIZER, 1), PAIRS, strict=True):
        assert TOKENIZER.decode(ids[0]) == pair.source
        words = [TOKENIZER.token(label) if label else "" for label in labels[0].tolist()]
        assert words == german_of_each_word(pair)
    together = word_batches(PAIRS, TOKENIZER, 16)
    assert [len(labels) for _, labels in together] == [16, 16, 8]
    assert all(ids.shape == labels.shape for (ids,), labels in together)


def test_counting_and_its_loss():
    pairs = [Pair("a b", "x y", ((0, 0), (1, 1)))] * 3 + [Pair("a", "z", ((0, 0),))]
    counts = word_for_word.counted(pairs)
    assert counts == {"a": {"x": 3, "z": 1}, "b": {"y": 3}}
    assert word_for_word.loss_of_counting(counts) == pytest.approx(
        (3 * math.log(4 / 3) + math.log(4)) / 7
    )
    assert word_for_word.counted(pairs, at_places=True)["b", 1] == {"y": 3}


def test_counting_goes_by_place_and_else_by_word():
    known = [Pair("a a", "x y", ((0, 0), (1, 1))), Pair("a", "x", ((0, 0),))]
    asked = [Pair("a a a c", "x y x z", ((0, 0), (1, 1), (2, 2), (3, 3)))]
    assert word_for_word.share_by_counting(known, asked) == 3 / 4


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_leaves_out_what_it_says(branch):
    x = torch.randn(2, 3)
    gone = BRANCHES[branch](x, lambda h: torch.zeros_like(h), lambda h: 10 * h)
    assert torch.equal(gone, {"post-norm": 10 * x, "pre-norm": x, "no norm": x}.get(branch, 0 * x))
    block = word_for_word.word_reader(TOKENIZER.vocab_size, branch, 1, 8).encoder[0]
    assert block.branch is BRANCHES[branch]


@pytest.mark.slow
def test_a_reader_learns_and_is_repeated_to_the_digit():
    torch.set_num_threads(1)
    batches = word_batches(PAIRS, TOKENIZER, 20)

    def learn():
        reader = word_for_word.word_reader(TOKENIZER.vocab_size, n_layers=1, d_model=16)
        return reader, word_for_word.losses_while_learning(reader, batches, 60, 1e-2, 5)

    (reader, losses), (_, again) = learn(), learn()
    assert losses == again and losses[-1] < 0.5 * losses[0]
    assert word_for_word.share_right(reader, batches) > 0.5
    assert len(word_for_word.read_aloud(reader, TOKENIZER, PAIRS[0].source)) == len(
        PAIRS[0].source.split()
    )


def test_a_run_that_diverges_returns_what_it_has():
    reader = word_for_word.word_reader(TOKENIZER.vocab_size, "no norm", n_layers=1, d_model=16)
    losses = word_for_word.losses_while_learning(
        reader, word_batches(PAIRS, TOKENIZER, 20), 40, 1e25
    )
    assert 1 <= len(losses) < 40
