"""Batches to learn from: what the model reads, and the right answer at each position."""

import operator
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Int, Int64
from torch import Tensor
from tqdm.auto import tqdm

from transformer_lesson.files import printable
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer

POOL = 50  # batches that are sorted by length together


class Batch(NamedTuple):
    """`model(*inputs)` gives the logits for `labels`; a label that is the pad id does not count."""

    inputs: tuple[Tensor, ...]
    labels: Tensor


def shift_right(
    target: Int64[Tensor, "batch n"],
) -> tuple[Int64[Tensor, "batch n-1"], Int64[Tensor, "batch n-1"]]:
    """The decoder's inputs and the labels: at each position the label is the next input.

    `<bos> Tabs schließen <eos>` becomes the inputs `<bos> Tabs schließen` and the labels
    `Tabs schließen <eos>`. Where a shorter row of the batch reads `<eos>`, its label is `<pad>`.

    Source: "Attention Is All You Need", section 3.1: "the output embeddings are offset by one
        position".
    Raises:
        ValueError: fewer than 2 tokens.
    """
    if target.shape[1] < 2:
        raise ValueError(
            f"A target needs 2 tokens or more, one to read and one to predict, "
            f"got {target.shape[1]}: put <bos> and <eos> around it."
        )
    return target[:, :-1], target[:, 1:]


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, got {batch_size}.")


def _cut(items: Sequence, size: int) -> list:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _encode_pairs(pairs: Sequence[Pair], tokenizer: Tokenizer) -> list[tuple[list[int], list[int]]]:
    """Each pair as ids: the source ends with <eos>, the target is between <bos> and <eos>."""
    if not pairs:
        raise ValueError("There are no pairs to make batches of: pass at least one.")
    encoded = []
    for index, pair in enumerate(tqdm(pairs, "Encoding", delay=3, leave=False, disable=None)):
        if not isinstance(pair, Pair):
            raise ValueError(
                f"Pair {index} is {printable(repr(pair), 60)}, but it must be a Pair: write "
                "Pair('the child', 'das Kind'), for example."
            )
        if not pair.source.strip() or not pair.target.strip():
            raise ValueError(
                f"Pair {index} has an empty side, {pair.source!r} and {pair.target!r}: "
                "leave such pairs out."
            )
        source = tokenizer.encode(pair.source) + [tokenizer.special_id("eos")]
        encoded.append((source, tokenizer.encode(pair.target, add_special=True)))
    return encoded


def _translation_batch(encoded: Sequence[tuple[list[int], list[int]]], pad_id: int) -> Batch:
    sources, targets = zip(*encoded, strict=True)
    inputs, labels = shift_right(pad_batch(targets, pad_id))  # (batch, target)
    return Batch((pad_batch(sources, pad_id), inputs), labels)


class EndlessBatches(ABC):
    """Endless batches. Each `iter()` begins the same sequence, whatever else draws numbers."""

    def __init__(self, batch_size: int, seed: int):
        _check_batch_size(batch_size)
        self.batch_size, self.seed = batch_size, seed

    def __iter__(self) -> Iterator[Batch]:
        return self.starting_at(0)

    def starting_at(self, step: int) -> Iterator[Batch]:
        """The sequence without its first `step` batches, whose tensors are never built."""
        choices = self._choices(random.Random(self.seed))
        return map(self._batch, islice(choices, step, None))

    @abstractmethod
    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        """The indices of the examples in each batch."""

    @abstractmethod
    def _batch(self, choice: list[int]) -> Batch:
        """The tensors of these examples."""


class TranslationBatches(EndlessBatches):
    """Endless batches of pairs for an encoder-decoder model, epoch after epoch.

    An epoch holds every pair once, in a new order. Sentences of similar length share a batch, so
    that few pads are needed: pairs are shuffled, each `POOL` batches' worth is sorted by the
    lengths of target and source and cut into batches, and the epoch's batches are shuffled. The
    last batch may be smaller.

    A batch's inputs are the source (batch, source), which ends with <eos>, and the target
    (batch, target) from <bos> on; the labels are the target up to <eos>. Pads are on the right.

    Args:
        tokenizer: one for both languages.
        seed: of the order.
        group_by_length: False skips the sorting.

    Raises:
        ValueError: no pairs, what is no `Pair`, one with an empty side, or `batch_size` under 1.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        batch_size: int,
        seed: int = 0,
        group_by_length: bool = True,
    ):
        super().__init__(batch_size, seed)
        self._encoded = _encode_pairs(pairs, tokenizer)
        self._pad_id = tokenizer.pad_id
        self.group_by_length = group_by_length

    @property
    def max_len(self) -> int:
        """The length of the longest source or target, which a model must be able to read."""
        return max(len(ids) for pair in self._encoded for ids in pair)

    @cached_property
    def padding(self) -> float:
        """The share of the first epoch's sources and labels that is padding, from 0 to 1."""
        tokens = cells = 0
        for choice in self._epoch(random.Random(self.seed)):
            sources = [len(self._encoded[i][0]) for i in choice]
            labels = [len(self._encoded[i][1]) - 1 for i in choice]
            tokens += sum(sources) + sum(labels)
            cells += len(choice) * (max(sources) + max(labels))
        return 1 - tokens / cells

    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        while True:
            yield from self._epoch(generator)

    def _epoch(self, generator: random.Random) -> list[list[int]]:
        order = list(range(len(self._encoded)))
        generator.shuffle(order)
        if self.group_by_length:
            pools = _cut(order, POOL * self.batch_size)
            order = [i for pool in pools for i in sorted(pool, key=self._lengths)]
        batches = _cut(order, self.batch_size)
        generator.shuffle(batches)
        return batches

    def _lengths(self, index: int) -> tuple[int, int]:
        source, target = self._encoded[index]
        return len(target), len(source)

    def _batch(self, choice: list[int]) -> Batch:
        return _translation_batch([self._encoded[i] for i in choice], self._pad_id)


def epoch(pairs: Sequence[Pair], tokenizer: Tokenizer, batch_size: int) -> list[Batch]:
    """Every pair once, in the order given, as batches like `TranslationBatches`': to validate on.

    Raises: as `TranslationBatches`.
    """
    _check_batch_size(batch_size)
    encoded = _encode_pairs(pairs, tokenizer)
    return [_translation_batch(part, tokenizer.pad_id) for part in _cut(encoded, batch_size)]


def compare_padding(
    pairs: Sequence[Pair], tokenizer: Tokenizer, batch_size: int
) -> dict[str, float]:
    """The share of padding when batches are drawn at random, and when grouped by length."""
    shuffled = TranslationBatches(pairs, tokenizer, batch_size, group_by_length=False)
    grouped = TranslationBatches(pairs, tokenizer, batch_size)
    return {"shuffled": shuffled.padding, "grouped by length": grouped.padding}


def _checked_text(ids: Sequence[int] | Tensor, length: int) -> Tensor:
    if length < 1:
        raise ValueError(f"length must be 1 or more tokens, got {length}.")
    text = torch.as_tensor(() if isinstance(ids, str) else ids)
    if isinstance(ids, str) or text.dim() != 1 or (len(text) and text.is_floating_point()):
        raise ValueError(
            f"The ids of a text must be whole numbers in one row, got {printable(repr(ids), 60)}: "
            "pass what tokenizer.encode(text) gives."
        )
    if len(text) <= length:
        raise ValueError(
            f"A window of {length} tokens and the one after it need a text of {length + 1} tokens "
            f"or more, got {len(text)}: take a longer text or a shorter window."
        )
    return text.long()


def _window_batch(text: Tensor, starts: Sequence[int], length: int) -> Batch:
    positions = torch.tensor(starts)[:, None] + torch.arange(length + 1)
    inputs, labels = shift_right(text[positions])  # (batch, length) each
    return Batch((inputs,), labels)


class WindowBatches(EndlessBatches):
    """Endless random windows of one long text for a language model.

    A batch's input is (batch, length); its labels are the same windows one token later.

    Args:
        ids: the text's token ids.
        length: tokens in a window.

    Raises:
        ValueError: the text is not a row of ids longer than a window, or a size is under 1.
    """

    def __init__(self, ids: Sequence[int] | Tensor, batch_size: int, length: int, seed: int = 0):
        super().__init__(batch_size, seed)
        self.ids, self.length = _checked_text(ids, length), length

    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        n_starts = len(self.ids) - self.length
        while True:
            yield [generator.randrange(n_starts) for _ in range(self.batch_size)]

    def _batch(self, choice: list[int]) -> Batch:
        return _window_batch(self.ids, choice, self.length)


def windows(
    ids: Int[Tensor, " text"], length: int, starts: Sequence[int]
) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
    """Return windows of a text, and the token that follows each of their tokens.

    The plainest form: the starts are given, and nothing is checked.

    Args:
        ids: the whole text.
        length: tokens in a window, n.
        starts: where each window starts; the text goes on for a token after each window.

    Returns:
        The inputs, and the labels: the same windows one token later.
    """
    inputs = torch.stack([ids[start : start + length] for start in starts])
    labels = torch.stack([ids[start + 1 : start + 1 + length] for start in starts])
    return inputs, labels


def windows_in_order(ids: Sequence[int] | Tensor, batch_size: int, length: int) -> list[Batch]:
    """A whole text once, in order, to validate on: every token but the first is a label once.

    Windows follow one another. The last one, which may be shorter, is a batch of its own.

    Raises: as `WindowBatches`.
    """
    _check_batch_size(batch_size)
    text = _checked_text(ids, length)
    *full, last = range(0, len(text) - 1, length)
    batches = [_window_batch(text, starts, length) for starts in _cut(full, batch_size)]
    return [*batches, _window_batch(text, [last], len(text) - 1 - last)]


def pad_batch(
    sequences: Sequence[Sequence[int]], pad_id: int, side: str = "right"
) -> Int64[Tensor, "batch n"]:
    """One row per sequence, padded with `pad_id` to the length n of the longest.

    Args:
        sequences: lists of token ids; some, but not all, may be empty.
        pad_id: the id of the padding token.
        side: where the padding goes: "right" for training, "left" for generating, so that
            every row ends in its last real token.

    Raises:
        ValueError: no sequences, only empty ones, a negative `pad_id`, or an unknown side.
        TypeError: an id is not an integer.
    """
    if side not in ("right", "left"):
        raise ValueError(f'side must be "right" or "left", got {side!r}.')
    if pad_id < 0:
        raise ValueError(f"pad_id must be a token id, 0 or more, got {pad_id}.")
    n = max((len(sequence) for sequence in sequences), default=0)
    if n == 0:
        raise ValueError(
            f"A batch needs at least one token, got {len(sequences)} sequences without any: "
            "pass at least one sequence that is not empty."
        )
    batch = torch.full((len(sequences), n), pad_id)  # (batch, n)
    for row, sequence in zip(batch, sequences, strict=True):
        ids = torch.tensor([operator.index(id_) for id_ in sequence], dtype=torch.int64)
        start = 0 if side == "right" else n - len(sequence)
        row[start : start + len(sequence)] = ids
    return batch


def count_padding(batch: Int64[Tensor, "batch n"], pad_id: int) -> float:
    """The share of a batch that is padding, from 0 to 1."""
    return (batch == pad_id).double().mean().item()
