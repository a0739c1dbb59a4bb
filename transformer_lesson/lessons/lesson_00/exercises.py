"""Lesson 00: the loop that turns guesses of the next word into a translation."""

from itertools import count

import torch

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.exercises.random_layers import Endless

EOS = "<eos>"
ENGLISH = "the a child king opens sees window dog old loudly today she".split()
GERMAN = "Kind König Hund Fenster sieht macht auf alte heute laut den ein".split()
TRANSLATIONS = ("das N V das N a .", "", "das N . die N V a .", "N V", "das N V das N und das N V")
"""Draw by draw: a translation, in which small words stand for themselves."""


class Translator:
    """Knows one translation; other words it goes on after the last of them, as well as it can.

    Args:
        source: the sentence that it translates.
        words: its translation.
    """

    def __init__(self, source: str, words: list[str]):
        self.source, self.words = source, words

    def __call__(self, source: str, written: list[str]) -> str:
        """Return the next word."""
        if not isinstance(written, list | tuple):
            return "<no-list>" if isinstance(source, str) else "<exchanged>"
        if source != self.source:
            return "<other-source>"
        known, written = [*self.words, EOS], list(written)
        if written == self.words[: len(written)]:
            return known[len(written)]
        if written[-1] == EOS:
            return EOS
        if not isinstance(written[-1], str):
            return "<no-word>"
        return known[self.words.index(written[-1]) + 1] if written[-1] in self.words else "<unk>"

    def __repr__(self) -> str:
        return f"a translator that writes: {' '.join([*self.words, EOS])}"


class _Word(str):
    """A word of a translation, which counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other) -> bool:
        self.comparisons += 1
        if self.comparisons > COMPARISONS:
            raise Endless
        return str.__eq__(self, other)

    def __ne__(self, other) -> bool:
        return not self == other

    __hash__ = str.__hash__


CALLS, COMPARISONS = 300, 3000
"""More calls of `next_word`, or comparisons of one word, show that a loop never ends."""
TOLD = 12  # words of such a loop


def _until_it_ends(answer, next_word, source):
    """Return what an answer returns; if its loop does not end, the first words that it got."""
    words = []

    def asked(source, written) -> str:
        """Return the next word, and keep it."""
        if len(words) == CALLS:
            raise Endless
        words.append(_Word(next_word(source, written)))
        return words[-1]

    asked.__qualname__ = "next_word"  # as errors call it
    try:
        return _plain(answer(asked, source))
    except Endless:
        return [*_plain(words[:TOLD]), "…"]


def _plain(result):
    """Return a result with words of Python's own kind, and a text without spaces at its end."""
    if isinstance(result, list | tuple):
        return [str(item) if isinstance(item, _Word) else item for item in result]
    return str(result).strip() if isinstance(result, str) else result


def _write_translation_inputs(draw: Draw) -> tuple:
    """A word that comes twice; no word; two sentences; two words; no full stop; 144 words."""
    source = _chosen(draw, ENGLISH, 3 if draw.small or draw.number == 5 else 5)
    if draw.number == 5:
        words = 12 * _chosen(draw, GERMAN, 12)  # more than anybody sets as a limit
    else:
        nouns = iter(_chosen(draw, GERMAN, len(GERMAN)))
        pattern = TRANSLATIONS[draw.number].split()
        words = [next(nouns) if word in ("N", "V", "a") else word for word in pattern]
    return Translator(" ".join(source), words), " ".join(source)


def _chosen(draw: Draw, words: list[str], amount: int) -> list[str]:
    """Return as many words, all different, in random order."""
    order = torch.randperm(len(words), generator=draw.generator).tolist()
    return [words[i] for i in order[:amount]]


@exercise(
    reference="transformer_lesson.generation.plain:write_translation",
    make_inputs=_write_translation_inputs,
    trial=_until_it_ends,
    draws=6,
    returns={"words": "word"},
    hints=(
        "Begin with an empty list. Each round asks `next_word` once, and hands it the source and "
        "the whole list.",
        'Look at the answer before you append it: `"<eos>"` is not a word of the translation.',
        'In a `while True:` loop: `word = next_word(source, written)`; if it is `"<eos>"`, '
        "`return written`; else `written.append(word)`.",
    ),
)
def write_translation(next_word, source):
    """Ask for the next word and append it, until the answer is <eos>; return the words."""
    first = choose(None, asked_once=next_word(source, []), first_unseen=next_word(source, []))
    written = choose([], first_unseen=[first], bos_in_front=["<bos>"])
    rounds = choose(count(), as_many_as_in_english=source.split(), ten_at_most=range(10))
    for _ in rounds:
        word = choose(_asked(next_word, source, written), asked_once=first)
        ended = choose(
            word == EOS,
            never_ends=word == "eos",
            inverted=word != EOS,
            twice_ends=word == EOS or word in written,
        )
        if choose(ended, eos_kept=False, period_left_out=ended or word == "."):
            break
        written = choose([*written, word], letters=[*written, *word], in_front=[word, *written])
        if choose(ended, period_ends=ended or word == "."):
            break
    return choose(written, last_one_lost=written[:-1])


def _asked(next_word, source, written):
    """Return the next word."""
    prefix = choose(written, one_behind=written[:-1], nothing_told=[], newest_only=written[-1:])
    prefix = choose(prefix, text_told=" ".join(written))
    first, second = choose((source, prefix), exchanged=(prefix, source))
    return next_word(first, second)
