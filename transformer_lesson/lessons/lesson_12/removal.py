"""What a chat model loses without one head or one block: its outputs replaced by their mean.

A head that is set to zero leaves a hole that no text ever had. Its **mean** over other texts takes
away what it says about this text, and leaves what it always says.

`removal.json` holds the results for each of SmolLM2's 270 heads and 30 blocks;
`measure_removal.py` made them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.intervals import student
from transformer_lesson.lessons.lesson_12.answer_explorer import Measure
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import target_masks
from transformer_lesson.stored import read_stored
from transformer_lesson.text import manual
from transformer_lesson.text.pretrained import chat_prompt
from transformer_lesson.text.tokenizers import Tokenizer

STORED = Path(__file__).with_name("removal.json")
CAPITALS = {
    "France": "Paris",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Spain": "Madrid",
    "Germany": "Berlin",
    "Egypt": "Cairo",
    "Greece": "Athens",
    "Russia": "Moscow",
    "China": "Beijing",
    "Poland": "Warsaw",
}
"""The first ten countries tried that it answers right, each in one sentence of the same form."""
FRESH = {
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Sweden": "Stockholm",
    "Norway": "Oslo",
    "Ireland": "Dublin",
    "Cuba": "Havana",
    "Iraq": "Baghdad",
    "Hungary": "Budapest",
    "Denmark": "Copenhagen",
    "Finland": "Helsinki",
}
"""The next ten that it answers right; one more, Iran, it gets wrong."""
FRESH_FROM = 17  # the first block whose heads are tried on `FRESH`: there, some look at countries
FRESH_BLOCKS = (1, *range(16, 30))  # whose heads are tried on `FRESH_COPIES`, one by one
FRESH_COPIES = 16, 13  # rows and seed of random sequences that picked no head
COUNTRY, CAPITAL = 3, 5  # which token of the answer "The capital of France is Paris."
OTHERS = {
    "Why is the sky blue?": "Because air scatters blue light more than red light.",
    "What do bees eat?": "Bees eat nectar and pollen from flowers.",
    "How do I cook rice?": "Boil it in twice as much water for about fifteen minutes.",
    "Name three colors.": "Red, green and yellow.",
    "What is a good name for a cat?": "Many people like Misty, Felix or Luna.",
    "How does a bicycle work?": "Your legs turn the pedals, and a chain turns the wheel.",
    "What is the largest ocean?": "The Pacific is larger than all land together.",
    "Why do leaves fall?": "Trees drop their leaves to save water in winter.",
    "What is a noun?": "A noun is a word for a person, a place or a thing.",
    "How old is the Earth?": "It is about four and a half billion years old.",
    "What is bread made of?": "Bread is made of flour, water, salt and yeast.",
    "Why do we sleep?": "Sleep lets the body rest and the brain sort what it learned.",
    "What is a triangle?": "A triangle is a shape with three straight sides.",
    "How far away is the Moon?": "Light takes a little more than a second to get there.",
    "Who painted the Mona Lisa?": "Leonardo da Vinci painted it in Florence.",
    "When was the telephone invented?": "Bell got a patent for it in 1876.",
    "How do I learn to swim?": "Find a teacher, and practice in shallow water first.",
    "Is glass a liquid?": "No, glass is a solid without crystals.",
    "What does a doctor do?": "A doctor finds out why people are ill and helps them.",
    "Can fish hear?": "Yes, they have ears inside their heads.",
}
"""Other conversations, over which means are taken."""


class Part(NamedTuple):
    """A part of a decoder that can be replaced: one head, or a whole block where head is `None`."""

    block: int
    head: int | None = None

    def __str__(self) -> str:
        return f"block {self.block}" if self.head is None else f"{self.block}.{self.head}"


class Means(NamedTuple):
    """What the parts of a decoder give on average, over all tokens but the first of each text.

    Args:
        heads: what each head has read, before W_O, shape (block, head, d_head).
        added: what each block adds to the stream, shape (block, d_model).
    """

    heads: Float[Tensor, "block head d_head"]
    added: Float[Tensor, "block d_model"]


class Effects(NamedTuple):
    """What a model still does. Probabilities have one number for each country.

    Args:
        country: probability of the country's name in the answer, for each of `CAPITALS`.
        capital: probability of its capital.
        fresh: probability of the capital for each of `FRESH`; empty for whole blocks, and for
            heads before block `FRESH_FROM`, none of which costs the first ten more than 0.06.
        sentences: loss on each example sentence of Python's manual, in nats a token; empty for
            whole blocks, and for heads outside `FRESH_BLOCKS`.
        copies: loss on the second copy of random tokens, for each of sixteen fresh sequences, in
            nats a token; empty as `sentences` is.
        prose: loss on all example sentences together.
        copy: loss on the second copies of the four sequences of `random_twice()`.
    """

    country: tuple[float, ...]
    capital: tuple[float, ...]
    fresh: tuple[float, ...]
    sentences: tuple[float, ...]
    copies: tuple[float, ...]
    prose: float
    copy: float


def conversations(tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]) -> list[list[int]]:
    """Return the ids of one question and its answer for each pair."""
    return [chat_prompt(tokenizer, [("user", q)]) + tokenizer.encode(a) for q, a in pairs]


def capital_answers(
    tokenizer: Tokenizer, capitals: Mapping[str, str] = CAPITALS
) -> Int64[Tensor, "country n"]:
    """Return the ids of each question about a capital with its right answer; all equally long.

    Args:
        tokenizer: in which each name is one token.
        capitals: by country.
    """
    pairs = [
        (f"What is the capital of {country}?", f"The capital of {country} is {capital}.")
        for country, capital in capitals.items()
    ]
    return torch.tensor(conversations(tokenizer, pairs))


def random_twice(rows: int = 4, seed: int = 12) -> Int64[Tensor, "rows 64"]:
    """Return rows of 32 random tokens of SmolLM2, each row followed by its copy."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(1000, 49_000, (rows, 32), generator=generator)
    return torch.cat([half, half], dim=1)


@torch.no_grad()
def means(model: nn.Module, texts: Sequence[list[int]]) -> Means:
    """Return the mean outputs of a model's parts over all tokens but the first of each text."""
    blocks, n = range(model.config.n_layers), sum(len(text) - 1 for text in texts)
    heads, added = ([0.0 for _ in blocks] for _ in range(2))
    for text in texts:
        ids = torch.tensor([text])
        with record(model) as run:
            model(ids)
        stream = [model.embedding(ids), *(run[f"decoder.{i}.output"] for i in blocks)]
        for i in blocks:
            heads[i] += run[f"decoder.{i}.self_attention.heads"][0, :, 1:].sum(dim=1) / n
            added[i] += (stream[i + 1] - stream[i])[0, 1:].sum(dim=0) / n
    return Means(torch.stack(heads), torch.stack(added))


def heads_replaced(heads: Iterable[Part], mean: Means) -> dict[str, Callable]:
    """Return what `record` takes to put some heads' means in place of what they have read.

    The first token of each text keeps what it has: heads with nothing to find rest on it.
    """
    by_block: dict[int, list[int]] = {}
    for block, head in heads:
        by_block.setdefault(block, []).append(head)

    def replacing(block: int, numbers: list[int]) -> Callable[[Tensor], Tensor]:
        """Return a function for one block's heads."""

        def replace(outputs: Tensor) -> Tensor:
            """Return the heads' outputs, (batch, head, n, d_head), some of them the mean."""
            outputs = outputs.clone()
            outputs[:, numbers, 1:] = mean.heads[block, numbers, None]
            return outputs

        return replace

    return {
        f"decoder.{block}.self_attention.heads": replacing(block, numbers)
        for block, numbers in by_block.items()
    }


def block_replaced(block: int, mean: Means, before: Tensor) -> dict[str, Callable]:
    """Return what `record` takes to have a block add its mean to all tokens but the first.

    Args:
        block: its number.
        mean: of all parts.
        before: the stream before it, shape (batch, n, d_model).
    """

    def replace(after: Tensor) -> Tensor:
        """Return the stream after the block, (batch, n, d_model)."""
        return torch.cat([after[:, :1], before[:, 1:] + mean.added[block]], dim=1)

    return {f"decoder.{block}.output": replace}


class Runs:
    """A model's forward passes over five texts, begun again at the block that is changed.

    Args:
        model: SmolLM2.
        tokenizer: its own.
        mean: what is put in place of a part.
    """

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, mean: Means):
        self.model, self.mean = model, mean
        ends = range(1, len(manual.EXAMPLES) + 1)
        encoded = [tokenizer.encode(" ".join(manual.EXAMPLES[:end])) for end in ends]
        self.ends, prose = [len(ids) for ids in encoded], torch.tensor(encoded[-1:])
        self.n_prompt = len(conversations(tokenizer, [("What is the capital of Italy?", "")])[0])
        sequences = [capital_answers(tokenizer, countries) for countries in (CAPITALS, FRESH)]
        sequences += [prose, random_twice(), random_twice(*FRESH_COPIES)]
        self.texts, self.labels = (
            [ids[:, :-1] for ids in sequences],
            [ids[:, 1:] for ids in sequences],
        )
        self.streams = [list(self._from(0, ids, model.embedding(ids))) for ids in self.texts]

    def _from(self, block: int, ids: Tensor, x: Tensor) -> Iterator[Tensor]:
        """Yield the stream before each block from this one on, and after the last."""
        mask = target_masks(ids, self.model.config)[0]
        for layer in self.model.decoder[block:]:
            yield x
            x = layer(x, mask)
        yield x

    @torch.no_grad()
    def effects(self, part: Part | None = None) -> Effects:
        """Return what the model does with a part replaced, or as it is."""
        first, prose, twice = (self._end(text, part) for text in (0, 2, 3))
        single = part is None or (part.head is not None and part.block in FRESH_BLOCKS)
        tried = single and (part is None or part.block >= FRESH_FROM)
        prose, twice = self._losses(2, prose, 0), self._losses(3, twice, 32)
        starts = [1, *self.ends[:-1]]
        sentences = (prose[0, a - 1 : b - 1] for a, b in zip(starts, self.ends, strict=True))
        return Effects(
            self._named(0, first, COUNTRY),
            self._named(0, first, CAPITAL),
            self._named(1, self._end(1, part), CAPITAL) if tried else (),
            tuple(losses.mean().item() for losses in sentences) if single else (),
            tuple(self._losses(4, self._end(4, part), 32).mean(dim=1).tolist()) if single else (),
            prose.mean().item(),
            twice.mean().item(),
        )

    def _end(self, text: int, part: Part | None) -> Tensor:
        """Return the stream after the last block, (batch, n, d_model)."""
        stream = self.streams[text]
        if part is None:
            return stream[-1]
        before = stream[part.block]
        if part.head is None:
            replaced = block_replaced(part.block, self.mean, before)
        else:
            replaced = heads_replaced([part], self.mean)
        with record(self.model, replaced):
            *_, end = self._from(part.block, self.texts[text], before)
        return end

    def _named(self, text: int, end: Tensor, which: int) -> tuple[float, ...]:
        """Return the probability of one token of each answer."""
        at = self.n_prompt - 1 + which
        P = self._logits(end[:, at]).softmax(dim=-1)  # (country, vocab_size)
        return tuple(P.gather(1, self.labels[text][:, at, None])[:, 0].tolist())

    def _logits(self, x: Tensor) -> Tensor:
        return self.model.projection(self.model.decoder_norm(x))

    def _losses(self, text: int, end: Tensor, first: int) -> Float[Tensor, "batch n"]:
        logits, labels = self._logits(end[:, first:]), self.labels[text][:, first:]
        return F.cross_entropy(logits.mT, labels, reduction="none")


def heads(first: int = 0) -> list[Part]:
    """Return every head of SmolLM2 from a block on, block after block."""
    return [Part(i, j) for i in range(first, 30) for j in range(9)]


@cache
def stored() -> Mapping[Part | None, Effects]:
    """Return the stored effects of each part, and of the whole model under `None`."""
    effects = {
        Part(*key) if key else None: Effects(*map(tuple, effects[:5]), *effects[5:])
        for key, *effects in read_stored(STORED, f"{__package__}.measure_removal")
    }
    return MappingProxyType(effects)


def measures() -> list[Measure]:
    """Return what AnswerExplorer shows: of the first ten capitals, of prose and of copying."""
    numbers: dict[str, Callable[[Effects], float]] = {
        "mean P(capital) of ten": lambda effects: fmean(effects.capital),
        "loss on prose": lambda effects: effects.prose,
        "loss on copying": lambda effects: effects.copy,
    }
    return [_measure(name, number) for name, number in numbers.items()]


def _measure(name: str, number: Callable[[Effects], float]) -> Measure:
    known = {part: number(effects) for part, effects in stored().items()}
    heads = [known[part] for part in known if part and part.head is not None]
    blocks = [known[part] for part in known if part and part.head is None]
    worst = known[None] + 2 if name.startswith("loss") else 0.0  # two nats
    matrix = torch.tensor(heads).view(len(blocks), -1)
    return Measure(name, known[None], worst, matrix, torch.tensor(blocks))


def change(part: Part, name: str) -> float:
    """Return how much a loss, "prose" or "copy", rises without a part, in nats a token."""
    return getattr(stored()[part], name) - getattr(stored()[None], name)


def mean_change(part: Part, name: str) -> tuple[float, float, float]:
    """Return how much a probability or a loss changes without a part, with its 95 % interval.

    Both are over questions, sentences or sequences: Student's t of their differences.

    Args:
        part: that is replaced.
        name: "country", "capital", "fresh", "sentences" or "copies".
    """
    before, after = (getattr(stored()[key], name) for key in (None, part))
    return student([b - a for a, b in zip(before, after, strict=True)])


def fresh_minus_first(part: Part) -> tuple[float, float, float]:
    """Return how a change of P(capital) differs between `FRESH` and `CAPITALS`, with an interval.

    Formula: the difference of two means of n differences each, ± t sqrt((s₁² + s₂²) / n), with t
    of n - 1 degrees of freedom: at least as wide as Welch's.

    Args:
        part: that is replaced, in a block from `FRESH_FROM` on.
    """
    (first, low_1, _), (fresh, low_2, _) = (mean_change(part, x) for x in ("capital", "fresh"))
    half = math.hypot(first - low_1, fresh - low_2)
    return fresh - first, fresh - first - half, fresh - first + half
