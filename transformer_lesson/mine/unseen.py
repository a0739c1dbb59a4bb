"""What a change does to sentences that training lacked: counted, with failures to read."""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.files import printable
from transformer_lesson.generation import translate
from transformer_lesson.generation.session import NaNLogits
from transformer_lesson.intervals import wilson
from transformer_lesson.mine.parts import Parts
from transformer_lesson.mine.side_by_side import check_words, run, translator
from transformer_lesson.text import grammar
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer

SENTENCE = "the child opens the window ."
MOST = 500
LONGEST = 120.0  # most seconds: loops are slow
SEED = 5  # training had none of its sentences
N_FAILURES = 3
MOST_WRITTEN = 24  # tokens; no right translation has so many, and some models never end
SHOWN = 12  # words of a translation that does not end


@dataclass(frozen=True)
class Translations:
    """A sentence and a sample of unseen ones, translated by a changed model and the unchanged one.

    Args:
        sentence, written: a sentence, and what the changed model makes of it.
        pairs: the sample, with the right translations.
        changed, unchanged: what the two models make of it.
        parts: whose functions ran.
        tried: the names of functions passed as arguments.
    """

    sentence: str
    written: str
    pairs: tuple[Pair, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    parts: Parts
    tried: tuple[str, ...]

    @property
    def right(self) -> int:
        """How many translations of the changed model are right, word for word."""
        return _right(self.changed, self.pairs)

    @property
    def control(self) -> int:
        """How many of the unchanged model are right."""
        return _right(self.unchanged, self.pairs)

    @property
    def empty(self) -> int:
        """How many translations of the changed model have no word."""
        return sum(not text for text in self.changed)

    def failures(self, n: int = N_FAILURES) -> list[tuple[str, str, str]]:
        """Return `n` failures drawn at random, always the same: source, right, written."""
        wrong = [
            (pair.source, pair.target, text)
            for pair, text in zip(self.pairs, self.changed, strict=True)
            if text != pair.target
        ]
        return random.Random(SEED).sample(wrong, min(n, len(wrong)))

    def __repr__(self) -> str:
        n = len(self.pairs)
        low, high = (round(100 * end) for end in wilson(self.right, n))
        lines = [
            f"{self.sentence} → {_shown(self.written)}",
            f"{self.right} of {n} unseen sentences are right (95 % interval: {low} to {high} %); "
            f"unchanged, {self.control} of {n}.",
        ]
        for source, right, written in self.failures():
            lines += ["", f"  {source}", f"  right: {right}", f"  wrote: {_shown(written)}"]
        lines += [f"Ours stands in for {name}: {why}." for name, why in self.parts.reasons.items()]
        return "\n".join(map(printable, lines))


def translations(n: int = 60, sentence: str = SENTENCE, **change: Callable) -> Translations:
    """Translate a sentence and `n` unseen ones with the trained translator, some functions changed.

    The rest are the learner's functions, or ours. The sentences are a random draw from the grammar,
    the same each time, and training had none of them.

    Args:
        n: number of sentences, 1 to 500.
        sentence: words of the translator's vocabulary, separated by spaces.
        change: functions to run instead, by name, as in `translation`.

    Raises:
        ValueError: `n` is out of range, or as in `translation`.
    """
    if not isinstance(n, int) or not 1 <= n <= MOST:
        raise Misuse(f"n is a number of sentences, 1 to {MOST}, got {n!r}: n=60 is quick.")
    model, tokenizer = translator()
    check_words(sentence, tokenizer)
    pairs = tuple(grammar.splits(0, n, SEED).unseen[:n])
    sources = [sentence, *(pair.source for pair in pairs)]
    (written, *changed), current = run(
        lambda mine: _translated(mine, tokenizer, sources), model, change, LONGEST
    )
    unchanged = _translated(model, tokenizer, sources[1:])
    return Translations(
        sentence, written, pairs, tuple(changed), tuple(unchanged), current, tuple(change)
    )


def _translated(model: nn.Module, tokenizer: Tokenizer, sources: list[str]) -> list[str]:
    """Return the translations; sentences of one length form a batch, so none is padded."""
    of_length = defaultdict(list)
    for source in sources:
        of_length[source.count(" ")].append(source)
    texts = {}
    for batch in of_length.values():
        try:
            written = translate(model, tokenizer, batch, max_new_tokens=MOST_WRITTEN)
            texts |= zip(batch, written, strict=True)
        except NaNLogits:
            texts |= dict.fromkeys(batch, "(nothing, because its logits are NaN)")
    return [texts[source] for source in sources]


def _shown(text: str) -> str:
    words = text.split()
    endless = len(words) >= MOST_WRITTEN
    return " ".join([*words[:SHOWN], "…"] if endless else words) or "(nothing)"


def _right(texts: tuple[str, ...], pairs: tuple[Pair, ...]) -> int:
    return sum(text == pair.target for text, pair in zip(texts, pairs, strict=True))
