"""Sentence pairs that differ in one verb, and in German only in the last word: auf or zu.

Up to the last word the German is the same, so whatever makes a translator write "auf" must come
from the English verb.
"""

from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from transformer_lesson.text import pad_batch
from transformer_lesson.text.grammar.draw import in_both_languages, random_clause
from transformer_lesson.text.grammar.lexicon import ADVERBS, VERBS
from transformer_lesson.text.grammar.meaning import Sentence
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer

FORMS = [form for name in ("open", "close") for form in VERBS[name][:2]]


class ParticleBatch(NamedTuple):
    """A batch of such sentences: what a translator has read when it must choose auf or zu."""

    opens: Int64[Tensor, "batch source"]
    closes: Int64[Tensor, "batch source"]
    written: Int64[Tensor, "batch target"]
    """<bos> and the German without its particle."""
    verb: Int64[Tensor, " batch"]
    """The position of the verb in the English sentence."""
    period: Int64[Tensor, " batch"]
    """The position of the English sentence's end."""
    last: Int64[Tensor, " batch"]
    """The position of the last German word, whose query chooses the particle."""


def opened_and_closed(n: int, seed: int) -> list[tuple[Pair, Pair]]:
    """Return n different sentences in which somebody opens something, each with its counterpart.

    Args:
        n: number of pairs.
        seed: of the random sentences.
    """
    rng, pairs = Random(seed), {}
    while len(pairs) < n:
        clause, adverb = random_clause(rng, [VERBS["open"]]), rng.choice(["", *ADVERBS])
        opens, closes = (
            in_both_languages(Sentence(clause._replace(verb=VERBS[verb]), adverb))
            for verb in ("open", "close")
        )
        pairs[opens.source] = opens, closes
    return list(pairs.values())


def choices(pairs: list[tuple[Pair, Pair]], tokenizer: WordTokenizer) -> ParticleBatch:
    """Return these sentences as one batch.

    Args:
        pairs: from `opened_and_closed`.
        tokenizer: the translator's, one token per word.
    """
    sources = [
        pad_batch([[*tokenizer.encode(p.source), tokenizer.eos_id] for p in side], tokenizer.pad_id)
        for side in zip(*pairs, strict=True)
    ]
    german = [opens.target.split()[:-2] for opens, _ in pairs]  # without "auf ."
    prefixes = [[tokenizer.bos_id, *tokenizer.encode(" ".join(words))] for words in german]
    english = [opens.source.split() for opens, _ in pairs]
    verb = [next(i for i, word in enumerate(words) if word in FORMS) for words in english]
    return ParticleBatch(
        *sources,
        pad_batch(prefixes, tokenizer.pad_id),
        torch.tensor(verb),
        torch.tensor([len(words) - 1 for words in english]),
        torch.tensor([len(words) for words in german]),
    )
