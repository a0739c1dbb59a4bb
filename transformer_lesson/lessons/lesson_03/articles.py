"""Sentences whose articles need their noun: what the smallest attention model learns from."""

from collections.abc import Collection
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_lesson.text import grammar
from transformer_lesson.text.grammar.draw import random_clause
from transformer_lesson.text.grammar.lexicon import DETERMINERS
from transformer_lesson.text.grammar.meaning import NounPhrase
from transformer_lesson.text.pairs import Pair

ARTICLES = ("der", "die", "das")
NOT_ASKED = -1
_WITH_OBJECT = [verb for verb in grammar.VERBS.values() if verb.objects]


def two_nouns(n: int, seed: int, without: Collection[str] = ()) -> list[Pair]:
    """Return `n` different sentences like "the child opens the old window .", with their German.

    Args:
        n: number of sentences.
        seed: of the draw.
        without: English sentences to leave out.
    """
    rng, pairs = Random(seed), {}
    while len(pairs) < n:
        clause = random_clause(rng, _WITH_OBJECT)._replace(negated=False)
        if not all(isinstance(part, NounPhrase) for part in (clause.subject, clause.object)):
            continue
        subject, noun = (
            part._replace(determiner=DETERMINERS["the"], plural=False)
            for part in (clause.subject, clause.object)
        )
        sentence = grammar.Sentence(clause._replace(subject=subject, object=noun))
        pair = grammar.in_both_languages(sentence)
        if pair.source not in without:
            pairs[pair.source] = pair
    return list(pairs.values())


class Examples(NamedTuple):
    """Sentences as ids, and for each *the* the number of its article in `ARTICLES`."""

    ids: Int[Tensor, "sentence n"]
    """0 fills short sentences up."""
    article: Int[Tensor, "sentence n"]
    """`NOT_ASKED` at every word but *the*."""


def examples(pairs: list[Pair], numbers: dict[str, int]) -> Examples:
    """Return sentences as tensors; new words are added to `numbers`, from 1.

    The article is the one that a dictionary gives the noun: *den*, the accusative, counts as *der*.
    """
    n = max(pair.source.count(" ") for pair in pairs) + 1
    ids = torch.zeros(len(pairs), n, dtype=torch.long)
    article = torch.full((len(pairs), n), NOT_ASKED)
    for row, (source, target, alignment) in enumerate(pairs):
        german, german_of = target.split(), dict(alignment)
        for i, word in enumerate(source.split()):
            ids[row, i] = numbers.setdefault(word, len(numbers) + 1)
            if word == "the":
                form = german[german_of[i]]
                article[row, i] = ARTICLES.index("der" if form == "den" else form)
    return Examples(ids, article)
