"""The tokenizers in the page give the package's ids and texts."""

import sys
import unicodedata

import pytest

from tests.explorables.conftest import HOSTILE
from tests.explorables.page_modules import in_node
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.text import grammar, manual, menus
from transformer_lesson.text.tokenizers import BytePairTokenizer, CharacterTokenizer

ASSIGNED = [  # the page's Unicode may be newer and know more characters
    chr(code)
    for code in (*range(0x3400), *range(0x3400, sys.maxunicode, 97))
    if unicodedata.category(chr(code)) not in ("Cn", "Cs")
]
TEXTS = [
    *(text.replace("\ud83d", "?") for text in HOSTILE.values()),  # as an explorable sends it
    *("".join(ASSIGNED[i : i + 50]) for i in range(0, len(ASSIGNED), 50)),
    "e\u0301 n\u0303o",
    "<pad><bos> <unk> <eos> constructor __proto__ toString undefined",
    "\ufeffmark \x1c\x1d\x1e\x1f\x85 \u2028\u180e",
    "it's we'll they're I'd 've 12'34 l’eau rock'n'roll ''",
    "  two  spaces \n\n lines \t tabs  ",
]


@pytest.mark.slow
def test_ids_texts_and_tokens_are_pythons(tmp_path, unchecked):
    # a million ids: checking the signatures at each would take ten times as long
    sentences = [text for pair in menus.pairs() for text in (pair.source, pair.target)]
    sentences += [*manual.sentences(), *(pair.source for pair in grammar.generate(100, 0))]
    tokenizers = [
        trained_translator().tokenizer,
        CharacterTokenizer.train([manual.split().training]),
        BytePairTokenizer.train(sentences, 1000),
        BytePairTokenizer.train(["ab abc abcabc a bc aab undefined"] * 9, 300),
    ]
    texts = [*sentences, *TEXTS]
    cases = [{"tokenizer": one.to_json(), "texts": texts} for one in tokenizers]
    made, _ = in_node("tokenize.js", tmp_path, cases)
    for tokenizer, page in zip(tokenizers, made, strict=True):
        assert page["tokens"] == [tokenizer.token(i) for i in range(tokenizer.vocab_size)]
        for text, found in zip(texts, page["texts"], strict=True):
            ids = tokenizer.encode(text)
            same = found == [ids, tokenizer.decode(ids)]  # pytest would compare lists for minutes
            assert same, text[:60]
