"""A model trained on 64 characters reads 256: what happens, and what helps.

All quarters of the 256 are equally hard: only the distance to the beginning grows. The stored model
is the last one of `since_2017` after 300 steps; `measure_longer` makes it, and the table of all
kinds of positions.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.caching import copied
from transformer_lesson.checkpoints import load_checkpoint
from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.since_2017 import LENGTH
from transformer_lesson.lessons.lesson_13.variants import NoTurn, Recipe
from transformer_lesson.model.attention import (
    MultiHeadAttention,
    attention_scores,
    masked_softmax,
    repeat_kv,
)
from transformer_lesson.model.masks import Mask, written_out
from transformer_lesson.model.positions import rotary_angles, turn_pairs
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.batches import windows
from transformer_lesson.training.interrupt import load_whole

FACTOR = 4
"""How many times as long the texts are as in training."""
READ, STEPS = FACTOR * LENGTH, 300  # characters, steps of training
STORED, TABLE = (Path(__file__).with_name(name) for name in ("reader.safetensors", "longer.json"))
KINDS = ("rotary", "sinusoids", "no positions")
"""Kinds of positions, all trained on windows of 64."""
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
"""At which a model practices on windows of 256."""
FINE = 16
"""How many pieces of 16 characters `KINDS` are drawn with."""


def recipe_of(name: str) -> Recipe:
    """Return the recipe of one of `KINDS`, with the steps and the max_len for reading 256."""
    change = "nothing" if name == "rotary" else name
    return Recipe(change, steps=STEPS, max_len=READ)


@copied
def stored_reader() -> DecoderOnlyTransformer:
    """Return the rotary model, base 10,000, trained on windows of 64.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return load_checkpoint(STORED).model.float().requires_grad_(False)


def frequencies_of(model: DecoderOnlyTransformer) -> Float[Tensor, " half"]:
    """Return how fast each pair of a rotary model's queries turns, in radians per token."""
    return rotary_angles(torch.tensor([1]), model.config.d_head, model.config.rotary_base)[0]


@copied
def unseen_windows() -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
    """Return 64 unseen windows of 256 characters, and their labels."""
    ids = since_2017.text().tokenizer.encode(manual.split().validation)
    return windows(torch.tensor(ids), READ, range(0, 64 * READ, READ))


class Turning(nn.Module):
    """Turns each pair of a query or key by its own frequency, in radians per token."""

    def __init__(self, frequencies: Float[Tensor, " half"]):
        super().__init__()
        self.frequencies = frequencies

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Rotate tokens at the positions start, start + 1, ..."""
        positions = torch.arange(start, start + x.size(-2), device=x.device)
        angle = positions[:, None] * self.frequencies  # (n, d_head / 2)
        return turn_pairs(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def read_otherwise(
    model: DecoderOnlyTransformer,
    frequencies: Float[Tensor, " half"] | None = None,
    window: int | None = None,
) -> DecoderOnlyTransformer:
    """Return a copy of a model that reads with other frequencies, or through a window.

    Args:
        model: rotary; its weights are copied, so that training the copy leaves it alone.
        frequencies: radians per token of each pair; by default those of its base.
        window: how many tokens each token sees, including itself; by default all before it.
    """
    copy = DecoderOnlyTransformer(replace(model.config, attention_window=window)).eval()
    copy.load_state_dict(model.state_dict())
    if frequencies is not None:
        for block in copy.decoder:
            block.self_attention.rotate = Turning(frequencies)
    return copy


class NearAndFar(MultiHeadAttention):
    """Turns pairs for a key further back than `near` otherwise than for one that is near.

    Between a query and a key d tokens back, each pair turns by its speed times d, plus an angle.
    `turns` has both for near keys, then for far ones.
    """

    near: int
    turns: tuple[tuple[Tensor, Tensor], ...]

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask, start: int = 0) -> Tensor:
        """Return what each head collects from a whole text, its queries and keys unrotated."""
        K, V = (repeat_kv(x, self.n_heads // self.n_kv_heads) for x in (K, V))
        place = torch.arange(Q.size(-2))[:, None]
        near, far = (
            attention_scores(turned(Q, place * speeds + ahead), turned(K, place * speeds))
            for speeds, ahead in self.turns
        )
        scores = torch.where(place - place.T > self.near, far, near)  # (batch, head, query, key)
        return masked_softmax(scores, written_out(mask, scores)) @ V


def turned(x: Tensor, angle: Float[Tensor, "n half"]) -> Tensor:
    """Turn each pair of queries or keys by its angle."""
    return turn_pairs(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def read_far_otherwise(
    model: DecoderOnlyTransformer,
    near: int,
    speeds: Float[Tensor, " half"],
    ahead: Float[Tensor, " half"],
) -> DecoderOnlyTransformer:
    """Return a copy of a model that turns pairs otherwise, but only towards far keys.

    Args:
        model: rotary; it reads whole texts, without a cache.
        near: up to so many tokens back, pairs turn as they did in training.
        speeds, ahead: towards a key d tokens back, and d is more than that, pair j turns by
            speeds[j] * d + ahead[j] radians.
    """
    copy, frequencies = read_otherwise(model), frequencies_of(model)
    for block in copy.decoder:
        attention = block.self_attention
        attention.__class__, attention.rotate = NearAndFar, NoTurn()
        attention.near, attention.turns = (
            near,
            ((frequencies, torch.zeros_like(frequencies)), (speeds, ahead)),
        )
    return copy


def stopped(
    model: DecoderOnlyTransformer, pairs: Sequence[int], at: int = LENGTH - 1
) -> DecoderOnlyTransformer:
    """Return a copy in which these pairs turn no further than they do `at` tokens back."""
    frequencies = frequencies_of(model)
    stop = torch.isin(torch.arange(len(frequencies)), torch.tensor(pairs))
    return read_far_otherwise(
        model, at, frequencies.where(~stop, 0.0), (at * frequencies).where(stop, 0.0)
    )


def interpolated_beyond(model: DecoderOnlyTransformer, near: int) -> DecoderOnlyTransformer:
    """Return a copy for which only the distance beyond the nearest tokens is divided by 4."""
    frequencies = frequencies_of(model)
    return read_far_otherwise(
        model, near, frequencies / FACTOR, near * frequencies * (1 - 1 / FACTOR)
    )


@torch.no_grad()
def loss_by_position(model: DecoderOnlyTransformer) -> Float[Tensor, " n"]:
    """Return the mean loss at each of 256 positions, over 64 unseen windows, in nats."""
    inputs, labels = unseen_windows()
    return F.cross_entropy(model(inputs).mT, labels, reduction="none").mean(0)  # (n,)


def quarters(losses: Float[Tensor, " n"]) -> list[float]:
    """Return the mean over each 64 of 256 positions."""
    return pieces(losses, 4)


def pieces(losses: Float[Tensor, " n"], n: int = FINE) -> list[float]:
    """Return the mean over each of n equal pieces."""
    return losses.view(n, -1).mean(1).tolist()


def practice(
    model: DecoderOnlyTransformer, rate: float = 3e-3, steps: int = 30, length: int = READ
) -> None:
    """Train a model for a few steps, about a second: on four windows of 256, or as many characters.

    Args:
        model: changed in place.
        rate: of AdamW, the same in each step.
        steps: how many.
        length: of a window.
    """
    load_whole("torch._dynamo")  # otherwise loaded at an optimizer's first use
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    batches = WindowBatches(since_2017.text().training, 4 * READ // length, length, seed=99)
    for batch in islice(batches, steps):
        optimizer.zero_grad()
        F.cross_entropy(model(*batch.inputs).mT, batch.labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@copied
def stored() -> dict[str, list[list[float]]]:
    """Return the loss of each quarter, one list per seed, for each way to read 256 characters.

    For each of `KINDS` there are also the losses of each 16 characters, as "rotary, in pieces".
    After practice, there is a way for each of `RATES`, as in "by parts, 30 steps at 0.001"; on
    windows of 64, "unchanged, 30 steps on 64 at 0.001".

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(TABLE, f"{__package__}.measure_longer")


def best_of(way: str, quarter: int = -1) -> tuple[str, list[list[float]]]:
    """Return the rate at which a way's practice left a quarter's mean lowest, and its runs.

    Args:
        way: as in "by parts, 30 steps".
        quarter: by default the last.
    """
    runs = stored()
    names = [f"{way} at {rate}" for rate in RATES]
    best = min(names, key=lambda name: fmean(run[quarter] for run in runs[name]))
    return best.rpartition(" ")[2], runs[best]
