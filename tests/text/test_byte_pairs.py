"""Byte pairs in plain Python find and make the merges that the library does."""

import json
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lesson.text import menus
from transformer_lesson.text.byte_pairs import apply_byte_pairs, train_byte_pairs
from transformer_lesson.text.tokenizers import BytePairTokenizer

SPACE = "Ġ"  # how the library writes it
words = st.text("abc", min_size=1, max_size=6)


def counted(texts) -> Counter:
    return Counter(
        word.replace(" ", SPACE) for text in texts for word in re.findall(r" ?[A-Za-z]+", text)
    )


def learned(tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair.split(" ")) for pair in json.loads(tokenizer.to_json())["learned"]]


def test_the_merges_are_the_librarys_as_long_as_no_two_pairs_are_equally_frequent():
    entries = ["the child opens the window", "the children open the windows"]
    entries += ["she opens the other one"]
    library = BytePairTokenizer.train(entries, vocab_size=264)
    assert train_byte_pairs(counted(entries), 4) == learned(library)


def test_a_word_is_cut_as_the_library_cuts_it():
    entries = [pair.source for pair in menus.pairs() if pair.source.isascii()]
    library = BytePairTokenizer.train(entries, vocab_size=900)
    merges = learned(library)
    for word in counted(entries):
        theirs = library.tokens(word.replace(SPACE, " "))
        assert apply_byte_pairs(word, merges) == [piece.replace("␣", SPACE) for piece in theirs]


def test_of_equally_frequent_pairs_the_first_one_wins_and_without_pairs_it_ends():
    assert train_byte_pairs({"ba": 1, "ab": 1}, 5) == [("b", "a"), ("a", "b")]
    assert train_byte_pairs({"xab": 1}, 1) == [("x", "a")]
    assert train_byte_pairs({"a": 3}, 2) == train_byte_pairs({}, 2) == []


@pytest.mark.slow
@settings(deadline=None)
@given(st.dictionaries(words, st.integers(1, 9), max_size=5), st.integers(0, 8))
def test_pieces_make_the_word_and_each_merge_was_a_most_frequent_pair(counts, n_merges):
    merges = train_byte_pairs(counts, n_merges)
    assert len(merges) <= n_merges
    for i, pair in enumerate(merges):
        frequency = Counter()
        for word, count in counts.items():
            pieces = apply_byte_pairs(word, merges[:i])
            assert "".join(pieces) == word
            for neighbors in pairwise(pieces):
                frequency[neighbors] += count
        assert frequency[pair] == max(frequency.values())
