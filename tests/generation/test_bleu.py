"""BLEU is sacrebleu's, and the n-grams shown are those that it counted."""

import pytest
import sacrebleu

from transformer_lesson.generation import NGram, bleu, exact_match, ngram_matches

HYPOTHESES = ["Der Hund sieht die Katze .", "Ich esse heute einen roten Apfel .", "Sie lacht !"]
REFERENCES = ["Der Hund sieht eine Katze .", "Heute esse ich einen roten Apfel .", "Sie lacht !"]


@pytest.mark.parametrize("end", [None, -2])  # whole sentences, and some that are too short
def test_equals_sacrebleu(end):
    hypotheses = [text[:end] for text in HYPOTHESES]
    ours, theirs = bleu(hypotheses, REFERENCES), sacrebleu.corpus_bleu(hypotheses, [REFERENCES])
    assert ours.score == pytest.approx(theirs.score)
    assert list(ours.precisions) == theirs.precisions
    assert ours.brevity_penalty == theirs.bp and (theirs.bp < 1) == (end is not None)
    assert (ours.hypothesis_length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)
    for n in range(1, 5):
        pairs = zip(hypotheses, REFERENCES, strict=True)
        matches = [one for pair in pairs for one in ngram_matches(*pair, n)]
        assert sum(one.matched for one in matches) == theirs.counts[n - 1]
        assert sum(one.count for one in matches) == theirs.totals[n - 1]
    assert bleu(["Sie lacht !"], ["Sie lacht !"]).score == pytest.approx(100)


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
        (["a"], "a", "must be lists: wrap one string in a list"),
    ],
)
def test_bad_input_is_named(measure, hypotheses, references, message, unchecked):
    with pytest.raises(ValueError, match=message):
        measure(hypotheses, references)
