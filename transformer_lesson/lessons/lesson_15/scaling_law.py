"""Small GPTs of several sizes, each trained on several amounts of text: the data for a scaling law.

Each run is trained separately, with a learning rate that falls to 0 as its text ends. A loss read
in the middle of a longer run would be higher, because the rate has not fallen yet.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.caching import copied
from transformer_lesson.model.parameters import count_product_weights
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import manual
from transformer_lesson.text.batches import Batch, windows, windows_in_order
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import TrainConfig, train
from transformer_lesson.training.loss import validation_loss
from transformer_lesson.training.recipes import MANUAL

WIDTHS, TOKENS, SEEDS = (24, 32, 40, 64), (51_200, 102_400, 204_800, 409_600), (0, 1, 2)
HELD_OUT = (96, 102_400), (96, 409_600)
"""Width and tokens of runs outside the grid, of a model larger than all in it."""
RATES = {
    24: {0.1: 2.4795, 0.2: 2.3054, 0.4: 2.1566, 0.8: 2.202},
    64: {0.1: 2.2548, 0.2: 2.0932, 0.4: 2.0462, 0.8: 2.1841},
    96: {0.1: 2.2088, 0.2: 2.0187, 0.4: 1.9399, 0.8: 2.1211},
}
"""By width, the losses of `run(width, 102_400, rate=rate)`: why the rate is 0.4 / width."""
ROWS, LENGTH = 2, 64  # of a batch: small, or a short text would give too few steps
STORED = Path(__file__).with_name("scaling_law.json")


class Run(NamedTuple):
    """One model's result.

    Args:
        d_model: its width.
        size: number of weights in matrix products, N.
        tokens: characters read, each once, D.
        seed: of its weights and of the text's order.
        loss: mean in nats per character, on unseen topics.
    """

    d_model: int
    size: int
    tokens: int
    seed: int
    loss: float


class Texts(NamedTuple):
    """The manual in characters, for training and for measuring."""

    tokenizer: CharacterTokenizer
    training: Tensor
    validation: Tensor


@copied
def texts() -> Texts:
    """Return both texts as ids."""
    training, validation = manual.split()
    tokenizer = CharacterTokenizer.train([training])
    return Texts(
        tokenizer, *(torch.tensor(tokenizer.encode(part)) for part in (training, validation))
    )


def build(d_model: int, seed: int = 0) -> DecoderOnlyTransformer:
    """Return an untrained GPT of two blocks and four heads, d_model a multiple of 8."""
    sizes = {"d_model": d_model, "d_ff": 4 * d_model, "max_len": LENGTH}
    torch.manual_seed(seed)
    recipe = replace(MANUAL, sizes=MANUAL.sizes | sizes)
    return DecoderOnlyTransformer(recipe.model_config(texts().tokenizer))


def batches(ids: Tensor, tokens: int, seed: int) -> Iterator[Batch]:
    """Yield windows of a text in random order, each once, up to this many tokens.

    Raises:
        ValueError: the text has fewer tokens.
    """
    generator = torch.Generator().manual_seed(seed)
    starts = LENGTH * torch.randperm((len(ids) - 1) // LENGTH, generator=generator)
    steps = tokens // (ROWS * LENGTH)
    if ROWS * steps > len(starts):
        raise ValueError(
            f"The text has {LENGTH * len(starts):,} tokens, fewer than {tokens:,}: read fewer."
        )
    for places in starts.split(ROWS)[:steps]:
        inputs, labels = windows(ids, LENGTH, places.tolist())
        yield Batch((inputs,), labels)


def run(d_model: int, tokens: int, seed: int = 0, rate: float = 0.4) -> Run:
    """Train a model on this many tokens and measure it.

    The highest learning rate is rate / d_model, and falls to zero.

    Source: Yang and others, "Tensor Programs V" (2022), for a rate that falls with the width.
    Differs: they let the output's weights begin smaller, too.
    """
    model, steps = build(d_model, seed), tokens // (ROWS * LENGTH)
    config = TrainConfig(
        steps=steps,
        learning_rate=rate / d_model,
        schedule="linear",
        warmup_steps=max(1, steps // 10),
        weight_decay=0.1,
        seed=seed,
    )
    train(model, batches(texts().training, tokens, seed), config)
    loss = validation_loss(model, windows_in_order(texts().validation, 64, LENGTH))
    return Run(d_model, count_product_weights(model), tokens, seed, loss)


class Runs(NamedTuple):
    """The runs to fit a law to, and those to test it on."""

    grid: list[Run]
    held_out: list[Run]


def stored() -> Runs:
    """Return the runs of `measure_scaling_law.py`.

    Raises:
        ValueError: the file is missing or damaged.
    """
    runs = read_stored(
        STORED, f"{__package__}.measure_scaling_law", make=lambda rows: [Run(*row) for row in rows]
    )
    parts = [], []
    for run in runs:
        parts[(run.d_model, run.tokens) in HELD_OUT].append(run)
    return Runs(*parts)


def resampled(runs: Sequence[Run], number: int) -> list[Run]:
    """Return a bootstrap sample of the runs: some occur twice, some not at all.

    In fits to many such samples, a constant that depends on few runs varies a lot.

    Args:
        number: of the sample; the same number gives the same one.

    Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979).
    """
    return random.Random(number).choices(runs, k=len(runs))


def misfit_at(alpha: float, beta: float, N: Tensor, D: Tensor, L: Tensor) -> float:
    """Return how far the closest law with these exponents misses the losses.

    Least squares finds E, A and B of E + A / N^alpha + B / D^beta. Returned is the root of the mean
    squared difference from the losses, in nats.

    Args:
        alpha, beta: exponents of size and of text, above 0.
        N: weights of each run, float64, shape (run,).
        D: tokens that each read, float64, shape (run,).
        L: what each reached, in nats per token, float64, shape (run,).

    Raises:
        ValueError: a size or a number of tokens that is not above 0.
    """
    if not min(N.min(), D.min()) > 0:
        raise ValueError("a run has no weights or no tokens: each number in N and D is above 0.")
    X = torch.stack([torch.ones_like(N), N**-alpha, D**-beta], dim=1)  # (run, 3)
    factors = torch.linalg.lstsq(X, L[:, None]).solution  # E, A and B, (3, 1)
    return (X @ factors - L[:, None]).square().mean().sqrt().item()
