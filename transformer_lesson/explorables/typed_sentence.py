"""Reading what somebody typed: the words that a translator knows, and what to say of the rest."""

import difflib
from collections.abc import Collection
from typing import NamedTuple

from transformer_lesson.text.tokenizers import WordTokenizer, words


class Reading(NamedTuple):
    """A typed sentence as a translator can read it.

    Args:
        tokens: its words, each as the vocabulary has it.
        known: for each word whether the vocabulary has it.
        changes: in sentences, what was changed.
        offers: in sentences, words that are not known, and similar ones that are.
    """

    tokens: tuple[str, ...]
    known: tuple[bool, ...]
    changes: tuple[str, ...]
    offers: tuple[str, ...]


def read_sentence(sentence: str, vocabulary: Collection[str], closing: str = "") -> Reading:
    """Split a sentence into words and look for each of them, in other spellings too.

    "The" is read as "the", and "doesn't" as "does not", where the vocabulary has only those.

    Args:
        sentence: anything.
        vocabulary: the words that the translator has learned in the source language.
        closing: the mark that ends every sentence of the vocabulary's language, if one does.
    """
    read, respelled, unknown = [], [], []
    visible = "".join(c for c in sentence if c.isprintable() or c.isspace())
    for word in words(visible):
        tokens = _spelled(word, vocabulary)
        read += tokens or [word]
        if not tokens:
            unknown.append(word)
        elif tokens != [word]:
            respelled.append(f"“{word}” as “{' '.join(tokens)}”")
    changes = [f"Read {_listed(respelled)}."] if respelled else []
    if closing and read and read[-1].isalnum():
        read.append(closing)
        changes.append(f"A “{closing}” was added: every sentence of the corpus ends with one.")
    offers = [_offer(word, vocabulary) for word in list(dict.fromkeys(unknown))[:5]]
    known = tuple(word in vocabulary for word in read)
    return Reading(tuple(read), known, tuple(changes), tuple(offers))


def _spelled(word: str, vocabulary: Collection[str]) -> list[str]:
    """Return the word as the vocabulary has it, or nothing."""
    for form in (word, word.lower(), word.capitalize()):
        if form in vocabulary:
            return [form]
    stem = word.lower().replace("’", "'").removesuffix("n't")
    return [stem, "not"] if stem in vocabulary and "not" in vocabulary else []


def _offer(word: str, vocabulary: Collection[str]) -> str:
    similar = difflib.get_close_matches(word[:30].lower(), sorted(vocabulary), n=3)
    offered = f"; similar words that are: {', '.join(similar)}" if similar else ""
    return f"“{word:.30}” is not in the vocabulary{offered}."


def _listed(items: list[str]) -> str:
    return ", ".join(items[:6]) + (" and others" if len(items) > 6 else "")


def source_ids(tokenizer: WordTokenizer, reading: Reading) -> list[int]:
    """Return the ids that the encoder reads: `<unk>` for unknown words, `<eos>` at the end."""
    ids = [
        tokenizer.vocabulary[token] if known else tokenizer.unk_id
        for token, known in zip(reading.tokens, reading.known, strict=True)
    ]
    return [*ids, tokenizer.eos_id]
