"""What an attempt has after its adverb, and how much GRPO praises attempts of each kind.

"heute sieht der Hund die Katze" has a verb there, as German wants it; in English order a word of
the subject follows, the right one or a wrong one: "heute der Hund …", "heute die Hund …".
"""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_lesson.lessons.lesson_16.manners import Attempts, Meaning, Reward, judged
from transformer_lesson.text.grammar import habits, lexicon
from transformer_lesson.training.preferences import group_advantages

VERBS = frozenset(
    form
    for verb in (*lexicon.VERBS.values(), *lexicon.REPORTS.values(), lexicon.BE)
    for form in (verb.german, verb.german_plural)
)
KINDS = ("a verb", "the subject's right word", "a wrong word")


class Praise(NamedTuple):
    """Attempts of one kind: how many, and the means of their advantages and rewards."""

    n: int
    advantage: float
    reward: float


def with_adverb(meanings: Sequence[Meaning], n: int = 100) -> list[Meaning]:
    """Return the first n sentences that begin with an adverb."""
    return [meaning for meaning in meanings if habits.kind(meaning[0]) == "adverb"][:n]


def after_adverb(text: str, english_order: str) -> str:
    """Return which of `KINDS` an attempt's second word is."""
    word = text.split()[1:2]
    if VERBS.intersection(word):
        return KINDS[0]
    return KINDS[1] if word == english_order.split()[1:2] else KINDS[2]


def praised(tried: Attempts, meanings: Sequence[Meaning], reward: Reward) -> dict[str, Praise]:
    """Return the praise for each kind of attempt that occurs."""
    rewards = judged(tried, [pair for _, pair in meanings], reward)
    kinds = [
        after_adverb(text, habits.english_order(meaning))
        for texts, (meaning, _) in zip(tried.texts, meanings, strict=True)
        for text in texts
    ]
    numbers = zip(
        group_advantages(rewards).flatten().tolist(), rewards.flatten().tolist(), strict=True
    )
    rows = list(zip(kinds, numbers, strict=True))
    by_kind = {kind: [both for other, both in rows if other == kind] for kind in KINDS}
    return {
        kind: Praise(len(group), *(sum(column) / len(group) for column in zip(*group, strict=True)))
        for kind, group in by_kind.items()
        if group
    }
