"""Sentences with two nouns, their articles, and a head built by hand that finds each noun."""

import math

import torch

from transformer_lesson.lessons.lesson_03.articles import ARTICLES, NOT_ASKED, examples, two_nouns
from transformer_lesson.lessons.lesson_03.torn_head import one_step, own_noun, word_vectors
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.text.grammar.lexicon import NOUNS

SENTENCE = "the child opens the window ."


def test_each_article_is_that_of_its_noun_and_the_head_finds_it():
    pairs, numbers = two_nouns(200, seed=1, without=[SENTENCE]), {}
    assert len({pair.source for pair in pairs}) == 200
    assert SENTENCE not in [pair.source for pair in pairs]
    ids, article = examples(pairs, numbers)
    W_Q, W_K = own_noun(one_step())
    for row, pair in enumerate(pairs):
        words = pair.source.split()
        places = [i for i, word in enumerate(words) if word in NOUNS]
        asked = [i for i, word in enumerate(words) if word == "the"]
        assert len(places) == len(asked) == 2
        assert (article[row] != NOT_ASKED).nonzero().flatten().tolist() == asked
        assert [numbers[word] for word in words] == ids[row, : len(words)].tolist()
        x = word_vectors(words)
        weights = ((x @ W_Q) @ (x @ W_K).T / math.sqrt(W_Q.size(1))).softmax(dim=-1)
        for the, noun in zip(asked, places, strict=True):
            assert ARTICLES[article[row, the]] == NOUNS[words[noun]].article
            assert weights[the, noun] > 0.9


def test_r_turns_a_places_code_into_the_next_ones():
    codes = sinusoidal_encoding(9, 2)
    assert torch.allclose(codes[:-1] @ one_step(), codes[1:], atol=1e-6)
