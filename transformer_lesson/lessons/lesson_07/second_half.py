"""Sentences that stop where a second half of the verb is due, or the period.

A verb in two parts, "macht … auf", against one that has a single part, "sieht": both with the same
subject and object, so whatever differs comes from the verb.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.text.grammar.draw import in_both_languages, random_clause
from transformer_lesson.text.grammar.lexicon import VERBS, Verb
from transformer_lesson.text.grammar.meaning import Clause, Sentence

TWO_PARTS = [verb for verb in VERBS.values() if verb.objects and verb.particle]
ONE_PART = [verb for verb in VERBS.values() if verb.objects and not verb.particle]
HALVES = tuple(sorted({verb.particle for verb in TWO_PARTS}))
GERMAN_VERBS = sorted({f for v in TWO_PARTS + ONE_PART for f in (v.german, v.german_plural)})


class Begun(NamedTuple):
    """An English sentence, its German up to the last word or the period, and what is due there."""

    english: str
    german: str
    due: str


def sentences(n: int, seed: int) -> tuple[list[Begun], list[Begun]]:
    """Return n sentences whose verb has two parts, and the same with a verb that has one.

    Args:
        n: number of sentences, all different.
        seed: of the random sentences.
    """
    draw, pairs = Random(seed), {}
    while len(pairs) < n:
        two_parts, one_part = draw.choice(TWO_PARTS), draw.choice(ONE_PART)
        clause = random_clause(draw, [two_parts])
        pair = _begun(clause, two_parts), _begun(clause, one_part)
        pairs[pair[0].english] = pair
    return tuple(map(list, zip(*pairs.values(), strict=True)))


def with_another_verb(begun: list[Begun], seed: int) -> list[Begun]:
    """Return the sentences with another German verb, one that never goes with the half that is due.

    Args:
        begun: sentences whose verb has two parts, as `sentences` returns them.
        seed: of the random verbs.
    """
    draw = Random(seed)
    halves_of, plurals = {}, {}
    for verb in TWO_PARTS:
        halves_of.setdefault(verb.german, set()).add(verb.particle)
        plurals[verb.german_plural] = verb.german
    changed = []
    for sentence in begun:
        words = sentence.german.split()
        at = next(i for i, word in enumerate(words) if word in halves_of or word in plurals)
        other = draw.choice(
            [verb for verb, halves in halves_of.items() if sentence.due not in halves]
        )
        if words[at] in plurals:
            other = next(plural for plural, verb in plurals.items() if verb == other)
        words[at] = other
        changed.append(sentence._replace(german=" ".join(words)))
    return changed


def most_frequent_by_verb(begun: list[Begun]) -> int:
    """Count the halves that are the most frequent one of their German verb in these sentences.

    No rule that knows only the verb gets more of them right.

    Args:
        begun: sentences whose verb has two parts, as `sentences` returns them.
    """
    singulars = {form: v.german for v in TWO_PARTS for form in (v.german, v.german_plural)}
    halves: dict[str, Counter[str]] = {}
    for sentence in begun:
        verb = next(singulars[word] for word in sentence.german.split() if word in singulars)
        halves.setdefault(verb, Counter())[sentence.due] += 1
    return sum(max(of_verb.values()) for of_verb in halves.values())


@contextmanager
def hidden(translator: nn.Module, words: Tensor) -> Iterator[None]:
    """Hide German words from all others, in every block of the decoder; they still see themselves.

    Args:
        translator: the trained translator.
        words: which ones, (batch, target).
    """

    def hide(block: nn.Module, arguments: tuple) -> tuple:
        y, memory, mask, *rest = arguments
        itself = torch.eye(words.size(1), dtype=torch.bool)
        return y, memory, mask & (~words[:, None, None] | itself), *rest

    hooks = [block.register_forward_pre_hook(hide) for block in translator.decoder]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _begun(clause: Clause, verb: Verb) -> Begun:
    english, german, *_ = in_both_languages(Sentence(clause._replace(verb=verb), ""))
    words = german.split()
    *begun, due = words[:-1] if verb.particle else words
    return Begun(english, " ".join(begun), due)
