"""Byte pairs in plain Python find and make the merges that the library does."""

import json
import re
from collections import Counter

from transformer_lesson.text import menus
from transformer_lesson.text.byte_pairs import apply_byte_pairs, train_byte_pairs
from transformer_lesson.text.tokenizers import BytePairTokenizer

SPACE = "Ġ"  # how the library writes it


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
