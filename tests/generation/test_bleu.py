"""BLEU is sacrebleu's, and the n-grams shown are those that it counted."""

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tests.parity import drawn
from transformer_lesson.generation import NGram, bleu, exact_match, ngram_matches

HYPOTHESES = ["Der Hund sieht die Katze .", "Ich esse heute einen roten Apfel .", "Sie lacht !"]
REFERENCES = ["Der Hund sieht eine Katze .", "Heute esse ich einen roten Apfel .", "Sie lacht !"]

sentences = st.lists(
    st.sampled_from(["der", "Hund", "die", "Katze,", "sieht", "."]), min_size=1, max_size=9
).map(" ".join)


@pytest.mark.parametrize("end", [None, -2])  # whole sentences, and some that are too short
def test_equals_sacrebleu(end):
    hypotheses = [text[:end] for text in HYPOTHESES]
    ours, theirs = bleu(hypotheses, REFERENCES), sacrebleu.corpus_bleu(hypotheses, [REFERENCES])
    assert ours.score == pytest.approx(theirs.score)
    assert list(ours.precisions) == theirs.precisions
    assert ours.brevity_penalty == theirs.bp and (theirs.bp < 1) == (end is not None)
    assert (ours.hypothesis_length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)


@pytest.mark.parametrize(("text", "score"), [("Sie lacht !", 100), ("Hund", 0), ("", 0)])
def test_a_perfect_short_sentence_scores_100_and_nothing_in_common_0(text, score):
    assert bleu([text], ["Sie lacht !"]).score == pytest.approx(score)


@pytest.mark.slow
@drawn
@given(hypothesis=sentences, reference=sentences)
def test_matches_add_up_to_sacrebleus_counts(hypothesis, reference):
    theirs = sacrebleu.sentence_bleu(hypothesis, [reference])
    for n in range(1, 5):
        matches = ngram_matches(hypothesis, reference, n)
        assert sum(m.matched for m in matches) == theirs.counts[n - 1]
        assert sum(m.count for m in matches) == theirs.totals[n - 1]
        assert all(len(m.tokens) == n for m in matches)


def test_matches_are_clipped_and_in_order():
    text, reference = "the the cat the", "the cat sat"
    words = [NGram(("the",), count=3, matched=1), NGram(("cat",), count=1, matched=1)]
    assert ngram_matches(text, reference, 1) == words
    pairs = [(("the", "the"), 0), (("the", "cat"), 1), (("cat", "the"), 0)]
    expected = [NGram(pair, count=1, matched=matched) for pair, matched in pairs]
    assert ngram_matches(text, reference, 2) == expected
    assert ngram_matches("the cat", "the cat", 3) == []
    for n in (0, 5):
        with pytest.raises(ValueError, match=f"n is {n}, but BLEU counts n-grams of 1 to 4 tokens"):
            ngram_matches("a", "a", n)


def test_exact_match_is_a_share():
    assert exact_match(HYPOTHESES, REFERENCES) == pytest.approx(1 / 3)
    assert exact_match(["a ."], ["a."]) == 0.0


@pytest.mark.parametrize("measure", [bleu, exact_match])
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "there are 0 hypotheses and 0 references"),
        (["a"], ["a", "b"], "there are 1 hypotheses and 2 references"),
        ("a", ["a"], "must be lists: wrap one string in a list"),
        (["a"], "a", "must be lists: wrap one string in a list"),
    ],
)
def test_bad_input_is_named(measure, hypotheses, references, message, unchecked):
    with pytest.raises(ValueError, match=message):
        measure(hypotheses, references)
