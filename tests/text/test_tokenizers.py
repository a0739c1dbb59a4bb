"""Text survives the way to ids and back, and nothing that a person types breaks or cheats it."""

import json
import unicodedata

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import (
    SPECIAL_TOKENS,
    BytePairTokenizer,
    CharacterTokenizer,
    WordTokenizer,
    tokenizer_from_json,
)

TEXTS = [text for pair in menus.EXAMPLES for text in (pair.source, pair.target)]
MENUS = [text for pair in menus.pairs() for text in (pair.source, pair.target)]
WORDS = WordTokenizer.train(TEXTS)
CHARACTERS = CharacterTokenizer.train(TEXTS)
BYTE_PAIRS = BytePairTokenizer.train(MENUS)
ALL = [WORDS, CHARACTERS, BYTE_PAIRS]
CLASSES = [WordTokenizer, CharacterTokenizer, BytePairTokenizer]
each_tokenizer = pytest.mark.parametrize("tokenizer", ALL)
each_kind = pytest.mark.parametrize("kind", CLASSES)

any_text = st.text()  # hypothesis leaves out surrogates; nulls, emoji, right-to-left are in


@pytest.mark.slow
@each_kind
def test_the_librarys_tokenizer_cuts_and_joins_as_ours(kind):
    known = unicodedata.ucd_3_2_0.category  # what every library's tables have
    characters = [chr(i) for i in range(0x3400) if known(chr(i)) != "Cn"]  # up to ideographs
    text = " ".join(f"a{c}b{c}{c}" for c in characters)
    tokenizer = kind.train([text])
    theirs = tokenizer.as_library()
    ids = tokenizer.encode(text)
    assert theirs.encode(text).ids == ids and len(set(ids)) > 900
    assert theirs.decode(ids) == tokenizer.decode(ids)


@each_kind
def test_typing_a_special_token_does_not_make_one(kind):
    text = "Save <eos> <pad> <bos> now"
    tokenizer = kind.train([text] * 100)
    ids = tokenizer.encode(text)
    assert min(ids) >= 4
    assert tokenizer.decode(ids).replace(" ", "") == text.replace(" ", "")


@each_tokenizer
def test_special_tokens_are_added_and_left_out_on_request(tokenizer):
    inner = tokenizer.encode("Close All Tabs")
    ids = tokenizer.encode("Close All Tabs", add_special=True)
    assert ids == [1, *inner, 2]
    assert tokenizer.decode([*ids, 0, 0]) == "Close All Tabs"
    kept = tokenizer.decode([*ids, 0], keep_special=True)
    assert kept.replace(" ", "") == "<bos>CloseAllTabs<eos><pad>"
    assert tokenizer.decode(torch.tensor(ids)) == "Close All Tabs"


def test_unknown_words_and_characters_become_unk():
    assert WORDS.tokens("Close unicorn") == ["Close", "<unk>"]
    assert WORDS.encode("Close unicorn") == [WORDS.vocabulary["Close"], 3]
    assert WORDS.decode(WORDS.encode("Close unicorn")) == "Close <unk>"
    assert CHARACTERS.tokens("a a🙂") == ["a", "␣", "a", "<unk>"]


def test_a_small_vocabulary_keeps_the_most_frequent_tokens():
    tokenizer = WordTokenizer.train(["b b a a c", "b"], vocab_size=6)
    assert list(tokenizer.vocabulary) == [*SPECIAL_TOKENS, "b", "a"]
    assert BYTE_PAIRS.vocab_size == 1000
    assert BytePairTokenizer.train(["aaaa"], vocab_size=260).vocab_size == 260
    assert BytePairTokenizer.train(["ab"], vocab_size=999).vocab_size == 261  # "ab" and no more


@each_tokenizer
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.encode(b"bytes"), TypeError, "str"),
        (lambda t: t.encode("abc\ud83d"), ValueError, r"pair, '\\ud83d', at position 3: remove it"),
        (lambda t: t.decode([4, -1]), ValueError, "id -1 is outside the vocabulary of "),
        (lambda t: t.decode([4, t.vocab_size]), ValueError, "is outside the vocabulary of "),
        (lambda t: type(t).train([]), ValueError, "no text to train on"),
        (lambda t: type(t).train("Close All Tabs"), TypeError, "wrap it in a list"),
        (lambda t: type(t).train(["a"], vocab_size=4), ValueError, "at least (260|5) here, got 4"),
    ],
)
def test_bad_input_is_refused(tokenizer, call, error, message):
    with pytest.raises(error, match=message):
        call(tokenizer)


@settings(deadline=None)
@given(st.sampled_from(CLASSES), st.lists(any_text, min_size=1).filter("".join), any_text)
def test_json_makes_the_same_tokenizer_again(kind, texts, text):
    if not any(part.strip() for part in texts):
        texts = ["a"]
    tokenizer = kind.train(texts, vocab_size=300)
    again = tokenizer_from_json(tokenizer.to_json())
    assert type(again) is kind and again.to_json() == tokenizer.to_json()
    assert list(again.vocabulary.items()) == list(tokenizer.vocabulary.items())
    ids = tokenizer.encode(text)
    assert again.encode(text) == ids and again.tokens(text) == tokenizer.tokens(text)
    assert kind is not BytePairTokenizer or again.decode(ids) == text


def as_json(kind, learned):
    return json.dumps({"kind": f"{kind}Tokenizer", "learned": learned})


FOREIGN = [
    ("[" * 100_000, "stored as JSON, and this is not JSON"),
    ("[]", "one of WordTokenizer, CharacterTokenizer, BytePairTokenizer, got None"),
    (as_json("Character", [*SPECIAL_TOKENS, 5]), '"learned" must be a list of strings'),
    (as_json("Word", ["Close", *SPECIAL_TOKENS]), "must start with <pad>"),
    (as_json("Word", [*SPECIAL_TOKENS, "a", "b", "a"]), "number its tokens"),
    (as_json("Word", [*SPECIAL_TOKENS, "a\ud800"]), "half of a surrogate pair"),
    (as_json("BytePair", ["a b", "ab c d"]), "must join two known pieces, got 'ab c d'"),
    (as_json("BytePair", ["zz zz"]), "two known pieces, got 'zz zz'"),
]


@pytest.mark.parametrize(("text", "message"), FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        tokenizer_from_json(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
