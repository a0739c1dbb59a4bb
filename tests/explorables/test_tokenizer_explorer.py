"""The same text in three tokenizers."""

import pytest

from transformer_lesson.explorables import TokenizerExplorer
from transformer_lesson.explorables.tokenizer_explorer import (
    BPE_SIZES,
    MAX_CHARACTERS,
    render_tokens,
)


def test_counts_ids_and_unknown_words_are_told():
    text = render_tokens("Restart the zyzzyva", 1000).text
    assert text.startswith("Tokens of the same text: 3 as words, 19 as characters,")
    assert "words: 3 tokens, 1 unknown" in text and "zyzzyva unk 3" in text
    assert "byte pairs:" in text and text.count("0 unknown") == 2


def test_unknown_character_is_shown_as_typed():
    assert "😀 unk 3" in render_tokens("a😀", 300).text


def test_a_larger_byte_pair_vocabulary_needs_no_more_tokens():
    needed = [
        int(
            render_tokens("Restart Kernel and Run All Cells", size)
            .text.split(" as byte")[0]
            .split()[-1]
        )
        for size in BPE_SIZES
    ]
    assert needed == sorted(needed, reverse=True) and needed[0] > needed[-1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [BPE_SIZES[0], BPE_SIZES[-1]])
def test_typed_text_is_drawn_or_answered(hostile, size):
    explorable = TokenizerExplorer(bpe_size=size)
    explorable.controls["text"].value = hostile
    text = explorable.rendering.text
    if not hostile.strip():
        assert text == "There is nothing to split: type a few words and press Enter."
    elif len(hostile) > MAX_CHARACTERS:
        assert f"{len(hostile):,} characters" in text and "shorten it" in text
    else:
        assert f"{len(hostile)} as characters" in text


def test_longest_text_is_drawn():
    assert "150 as characters" in render_tokens("x" * MAX_CHARACTERS, 300).text
