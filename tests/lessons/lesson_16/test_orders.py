"""What stands after an adverb, and what attempts of each kind are praised for."""

import torch

from transformer_lesson.lessons.lesson_16 import manners, orders
from transformer_lesson.text.grammar import habits


def test_a_verb_the_subjects_word_and_any_other_word_are_told_apart_and_praise_sums_to_nothing():
    (meaning, pair), *_ = orders.with_adverb(manners.short_sentences((0, 0, 20)).test)
    english = habits.english_order(meaning)
    adverb, word, *_ = english.split()
    texts = [pair.target, english, f"{adverb} Suppe .", adverb]
    kinds = [orders.after_adverb(text, english) for text in texts]
    assert kinds == [orders.KINDS[i] for i in (0, 1, 2, 2)]
    tried = manners.Attempts([texts], torch.zeros(4, 1, dtype=torch.long))
    found = orders.praised(tried, [(meaning, pair)], manners.words_found)
    assert [one.n for one in found.values()] == [1, 1, 2]
    assert found[kinds[0]].reward == found[kinds[1]].reward == 1  # any order of the right words
    assert abs(sum(one.n * one.advantage for one in found.values())) < 1e-5
