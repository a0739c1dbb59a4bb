"""Text survives the way to ids and back, and nothing that a person types breaks or cheats it."""

import json
import os
import subprocess
import sys
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
    words,
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
@settings(deadline=None)
@given(any_text)
def test_words_lose_only_white_space_and_splitting_twice_changes_nothing(text):
    found = words(text)
    assert "".join(found) == "".join(text.split())
    assert words(" ".join(found)) == found


@each_tokenizer
def test_the_special_tokens_have_the_first_four_ids(tokenizer):
    ids = (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id)
    assert ids == (0, 1, 2, 3)
    assert tuple(tokenizer.token(id_) for id_ in ids) == SPECIAL_TOKENS
    assert list(tokenizer.vocabulary.values()) == list(range(tokenizer.vocab_size))
    assert len(set(tokenizer.vocabulary)) == tokenizer.vocab_size


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(any_text)
def test_every_text_returns_from_its_byte_pairs(text):
    ids = BYTE_PAIRS.encode(text)
    assert BYTE_PAIRS.decode(ids) == text
    assert min(ids, default=4) >= 4


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
    either, other = WordTokenizer.train(["c a b"]), WordTokenizer.train(["b", "a c"])
    assert list(either.vocabulary) == list(other.vocabulary)
    assert BYTE_PAIRS.vocab_size == 1000
    assert BytePairTokenizer.train(["aaaa"], vocab_size=260).vocab_size == 260
    assert BytePairTokenizer.train(["ab"], vocab_size=999).vocab_size == 261  # "ab" and no more


TRAIN_AND_PRINT = """
import json
from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import BytePairTokenizer, WordTokenizer
texts = [text for pair in menus.pairs() for text in (pair.source, pair.target)]
for kind in (BytePairTokenizer, WordTokenizer):
    tokenizer = kind.train(texts, 600)
    print(json.dumps(tokenizer.vocabulary), tokenizer.encode(texts[-1]))
"""


@pytest.mark.slow
def test_training_gives_the_same_vocabulary_on_any_number_of_threads():
    outputs = []
    for threads, hash_seed in (("1", "1"), ("2", "2")):
        environment = os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", TRAIN_AND_PRINT]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("<unk>") == 2


@each_tokenizer
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda t, x=x: t.encode(x), TypeError, "str") for x in (None, 5, b"bytes", ["Close"])),
        (lambda t: t.encode("abc\ud83d"), ValueError, r"pair, '\\ud83d', at position 3: remove it"),
        (lambda t: t.decode([4, -1]), ValueError, "id -1 is outside the vocabulary of "),
        (lambda t: t.decode([4, t.vocab_size]), ValueError, "is outside the vocabulary of "),
        (lambda t: type(t).train([]), ValueError, "no text to train on"),
        (lambda t: type(t).train("Close All Tabs"), TypeError, "wrap it in a list"),
        (lambda t: type(t).train(["Close", 5]), TypeError, "str"),
    ],
)
def test_bad_input_is_refused(tokenizer, call, error, message):
    with pytest.raises(error, match=message):
        call(tokenizer)


@each_kind
def test_a_vocabulary_has_a_smallest_size(kind):
    smallest = 260 if kind is BytePairTokenizer else 5
    with pytest.raises(ValueError, match=f"at least {smallest} here, got {smallest - 1}"):
        kind.train(["Close"], vocab_size=smallest - 1)


@settings(deadline=None)
@given(st.sampled_from(CLASSES), st.lists(any_text, min_size=1).filter("".join), any_text)
def test_json_makes_the_same_tokenizer_again(kind, texts, text):
    if not any(part.strip() for part in texts):
        texts = ["a"]
    tokenizer = kind.train(texts, vocab_size=300)
    again = tokenizer_from_json(tokenizer.to_json())
    assert type(again) is kind and again.to_json() == tokenizer.to_json()
    assert list(again.vocabulary.items()) == list(tokenizer.vocabulary.items())
    ids = tokenizer.encode(text, add_special=True)
    assert again.encode(text, add_special=True) == ids
    assert again.tokens(text) == tokenizer.tokens(text)
    assert again.decode(ids, keep_special=True) == tokenizer.decode(ids, keep_special=True)


def as_json(kind, learned):
    return json.dumps({"kind": f"{kind}Tokenizer", "learned": learned})


FOREIGN = [
    ("", "stored as JSON, and this is not JSON: Expecting value"),
    ("[" * 100_000, "stored as JSON, and this is not JSON"),
    ("[]", "one of WordTokenizer, CharacterTokenizer, BytePairTokenizer, got None"),
    ('{"kind": ["WordTokenizer"]}', "got .'WordTokenizer'."),
    ('{"kind": "WordTokenizer"}', '"learned" must be a list of strings'),
    (as_json("Character", [*SPECIAL_TOKENS, 5]), '"learned" must be a list of strings'),
    (as_json("Word", ["Close", *SPECIAL_TOKENS]), "must start with <pad>"),
    (as_json("Word", [*SPECIAL_TOKENS, "a", "b", "a"]), "number its tokens"),
    (as_json("Word", [*SPECIAL_TOKENS, "a\ud800"]), "half of a surrogate pair"),
    (as_json("BytePair", ["a b", "ab c d"]), "must join two known pieces, got 'ab c d'"),
    (as_json("BytePair", ["a b", "\u5b57 a"]), "two known pieces, got '\u5b57 a'"),
    (as_json("BytePair", ["", " "]), "two known pieces, got ''"),
    (as_json("BytePair", ["zz zz"]), "two known pieces, got 'zz zz'"),
]


@pytest.mark.parametrize(("text", "message"), FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        tokenizer_from_json(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
