"""Sentences found by what they mean, and by their words."""

import pytest
import torch
from torch import nn

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.text.search import most_similar, most_words_shared, sentence_vectors
from transformer_lesson.text.tokenizers import WordTokenizer

SENTENCES = ["the cat sleeps", "the dog barks at the cat", "rain", "the the the the the the the"]


class Places(nn.Module):
    """Gives each token the vector (id, place in its sentence)."""

    config = ModelConfig(20, 2, 1, 1, 1, 50)

    def forward(self, ids):
        return torch.stack([ids.float(), torch.arange(ids.size(1)).expand_as(ids)], dim=-1)


def test_a_sentences_vector_is_the_mean_of_its_own_tokens():
    tokenizer = WordTokenizer.train(SENTENCES)
    vectors = sentence_vectors(Places(), tokenizer, 20 * SENTENCES)
    assert vectors.shape == (80, 2)
    for sentence, vector in zip(20 * SENTENCES, vectors, strict=True):
        ids = torch.tensor(tokenizer.encode(sentence, add_special=True)).float()
        assert vector.tolist() == pytest.approx([ids.mean().item(), (len(ids) - 1) / 2])


def test_the_most_similar_point_the_same_way_whatever_their_length():
    query = torch.tensor([2.0, 0.0])
    vectors = torch.tensor([[0.1, 0.0], [9.0, 9.0], [-5.0, 0.0], [3.0, 1.0]])
    assert most_similar(query, vectors, 4) == [0, 3, 1, 2]
    assert most_similar(query, vectors, 2) == [0, 3]
    assert most_similar(query, vectors[[0] * 7], 3) == [0, 1, 2]  # of equals the first ones
    assert most_similar(query, vectors, 9) == [0, 3, 1, 2]
    assert most_words_shared("snow", SENTENCES[:2], 9) == [0, 1]


def test_rare_words_count_and_long_sentences_pay():
    assert most_words_shared("Does the DOG sleep?", SENTENCES, 1) == [1]
    assert most_words_shared("the cat", SENTENCES, 2) == [0, 1]
    assert most_words_shared("snow", SENTENCES, 2) == [0, 1]  # nothing in common: the first ones
