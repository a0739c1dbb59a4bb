"""How good translations are: BLEU as the field reports it, the n-grams behind it, exact match."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MAX_ORDER = 4


class Bleu(NamedTuple):
    """BLEU = brevity_penalty * geometric mean of the precisions.

    Args:
        score: from 0 to 100.
        precisions: for n = 1 to 4, the percentage of the hypotheses' n-grams that their
            references have too. Where that would be 0 the first such n counts half a match, the
            next a quarter, and so on, unless nothing matches at all.
        brevity_penalty: 1, or less if the hypotheses are shorter than the references.
        hypothesis_length, reference_length: all tokens of each side.
    """

    score: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int


class NGram(NamedTuple):
    """One n-gram of a hypothesis and how often it counts as matched.

    Args:
        tokens: its n tokens.
        count: how often the hypothesis has it.
        matched: how many of these match: at most as many as the reference has.
    """

    tokens: tuple[str, ...]
    count: int
    matched: int


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """Score a whole test set with sacrebleu: its default tokens (13a), case and smoothing.

    Args:
        hypotheses: the translations.
        references: the right one for each.

    Raises:
        ValueError: no hypotheses, not as many references, or a string instead of a list.

    Source: Papineni et al., "BLEU" (2002); Post, "A Call for Clarity in Reporting BLEU Scores"
        (2018).
    Differs: n-grams longer than every hypothesis are left out, as sacrebleu does for single
        sentences, instead of making the score 0.
    """
    _check(hypotheses, references)
    result = _sacrebleu().corpus_score(list(hypotheses), [list(references)])
    return Bleu(
        score=result.score,
        precisions=tuple(result.precisions),
        brevity_penalty=result.bp,
        hypothesis_length=result.sys_len,
        reference_length=result.ref_len,
    )


def ngram_matches(hypothesis: str, reference: str, n: int) -> list[NGram]:
    """Return the hypothesis's n-grams in order, each once, with what the reference confirms.

    Matches are clipped: "the the the" finds "the" once in "the cat", not three times. All
    matched counts over all counts is the precision of order n.

    Raises:
        ValueError: n is not from 1 to 4.

    Source: Papineni et al., "BLEU" (2002), section 2.1.
    """
    if n not in range(1, MAX_ORDER + 1):
        raise ValueError(f"n is {n}, but BLEU counts n-grams of 1 to {MAX_ORDER} tokens.")
    counts, limits = _ngrams(hypothesis, n), _ngrams(reference, n)
    return [NGram(ngram, count, min(count, limits[ngram])) for ngram, count in counts.items()]


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of hypotheses, from 0 to 1, that equal their reference letter by letter.

    Raises:
        ValueError: as `bleu`.
    """
    _check(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return sum(hypothesis == reference for hypothesis, reference in pairs) / len(hypotheses)


def _sacrebleu():
    from sacrebleu.metrics import BLEU

    # force: no warning about sentences that end in a separate period, as those of our corpora do
    return BLEU(max_ngram_order=MAX_ORDER, effective_order=True, force=True)


def _ngrams(text: str, n: int) -> Counter:
    tokens = _sacrebleu().tokenizer(text).split()
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("hypotheses and references must be lists: wrap one string in a list.")
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            f"there are {len(hypotheses)} hypotheses and {len(references)} references: pass at "
            "least one, and one reference for each."
        )
