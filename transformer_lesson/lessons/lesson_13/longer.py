"""A model trained on 64 characters reads 256: what happens, and what helps.

All quarters of the 256 are equally hard: only the distance to the beginning grows. The stored model
is the last one of `since_2017` after 300 steps; `measure_longer` makes it, and the table of all
kinds of positions.
"""

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
from transformer_lesson.lessons.lesson_13.variants import Recipe
from transformer_lesson.model.positions import rotary_angles, turn_pairs
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.batches import windows
from transformer_lesson.training.interrupt import load_whole

READ, STEPS = 4 * LENGTH, 300  # characters, steps of training
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


def practice(model: DecoderOnlyTransformer, rate: float = 3e-3, steps: int = 30) -> None:
    """Train a model on windows of 256 for a few steps, four windows each: about a second."""
    load_whole("torch._dynamo")  # otherwise loaded at an optimizer's first use
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    for batch in islice(WindowBatches(since_2017.text().training, 4, READ, seed=99), steps):
        optimizer.zero_grad()
        F.cross_entropy(model(*batch.inputs).mT, batch.labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@copied
def stored() -> dict[str, list[list[float]]]:
    """Return the loss of each quarter, one list per seed, for each way to read 256 characters.

    For each of `KINDS` there are also the losses of each 16 characters, as "rotary, in pieces".
    After practice, there is a way for each of `RATES`, as in "by parts, 30 steps at 0.001".

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(TABLE, f"{__package__}.measure_longer")


def best_of(way: str) -> tuple[str, list[list[float]]]:
    """Return the rate at which a way's practice left the last quarter's mean lowest, and its runs.

    Args:
        way: as in "by parts".
    """
    runs = stored()
    names = [f"{way}, 30 steps at {rate}" for rate in RATES]
    best = min(names, key=lambda name: fmean(run[-1] for run in runs[name]))
    return best.rpartition(" ")[2], runs[best]
