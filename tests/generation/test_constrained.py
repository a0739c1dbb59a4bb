"""What a form lets through, tried against all short records."""

import itertools

import pytest

from transformer_lesson.generation import legal_next

WORDS = ["".join(word) for n in range(1, 6) for word in itertools.product("am", repeat=n)]
RECORDS = [f'{{"word": "{word}", "gender": "{gender}"}}' for word in WORDS for gender in "mfn"]


@pytest.mark.slow
def test_a_token_is_legal_where_a_record_begins_so():
    written = {record[:i] for record in RECORDS if len(record) < 31 for i in range(len(record) + 1)}
    short = ["".join(token) for n in (1, 2) for token in itertools.product('"am, :}7', repeat=n)]
    tokens = ["{", '{"word": "a', 'd": "', 'm", "gender": "m"}', '", "gender": "mf', '"}\n', *short]
    assert max(map(len, written)) == 30 and min(map(len, RECORDS)) == 28
    for text in written:
        begins = [any(record.startswith(text + token) for record in RECORDS) for token in tokens]
        assert legal_next(text, tokens).tolist() == begins, text


def test_letters_of_any_alphabet_make_a_word():
    assert legal_next('{"word": "T', ["ür", "ß", "é", "語", "7", " ", "_", "'"]).tolist() == [
        *[True] * 4,
        *[False] * 4,
    ]
