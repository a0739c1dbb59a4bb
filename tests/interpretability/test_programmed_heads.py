"""Heads that were written down look where they should."""

import pytest
import torch

from transformer_lesson.interpretability import programmed_heads
from transformer_lesson.model.attention import scaled_dot_product_attention

LONG = "if the woman sees the small dog , the king loves the old house ."


def read(sentence, head, n_places):
    x = programmed_heads.word_vectors(sentence.split(), n_places)
    return scaled_dot_product_attention(*(x @ W for W in head(n_places)))


def test_a_vector_says_what_a_word_is_and_where():
    x = programmed_heads.word_vectors("the woman sees .".split(), 5)
    facts = {0: [0, 6], 1: [1, 4, 7], 2: [2, 8], 3: [9]}  # an article, a feminine noun, a verb
    assert {i: row.nonzero()[:, 0].tolist() for i, row in enumerate(x)} == facts
    with pytest.raises(ValueError, match="4 words do not fit in 3 places"):
        programmed_heads.word_vectors("the woman sees .".split(), 3)


@pytest.mark.parametrize("n_places", [15, 20])
def test_an_article_is_handed_its_nouns_gender_and_a_word_whether_a_verb_stands_before(n_places):
    words, (masculine, feminine, neuter) = LONG.split(), torch.eye(3)
    handed, _ = read(LONG, programmed_heads.gender_head, n_places)
    expected = torch.stack([feminine, masculine, masculine, neuter])
    assert torch.allclose(handed[[word == "the" for word in words]], expected, atol=0.02)
    handed, weights = read(LONG, programmed_heads.role_head, n_places)
    assert [words[i] for i in (handed[:, 0] > 0.8).nonzero()[:, 0]] == ["the", "the"]
    assert handed[:, 0].sort().values[:-2].max() < 0.1
    assert (weights.diagonal(-1) > 0.95).all()
