"""From depth and minutes to sizes and steps, with a forecast of the result."""

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import nn

from transformer_lesson.capstone.material import LEAST_PAIRS, Material
from transformer_lesson.files import write_atomically
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text.batches import (
    Batch,
    EndlessBatches,
    TranslationBatches,
    WindowBatches,
    epoch,
    windows_in_order,
)
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer, Tokenizer
from transformer_lesson.training import History, TrainConfig, train
from transformer_lesson.training.loop import training_step
from transformer_lesson.training.loss import bits_per_character, total_loss
from transformer_lesson.training.optimizer import make_optimizer
from transformer_lesson.training.scaling import fit_power_law

LENGTH, WINDOWS, SENTENCES = 128, 8, 32  # tokens that a model reads; rows of a batch
PILOTS = 20, 5  # the two short runs take a 20th and a 5th of the steps
LEAST_STEPS, MOST_PASSES, DEEPEST = 64, 16, 8
MEASUREMENTS = 5  # time budget in held-out measurements: both pilots, the end, the translations
STORED = Path(__file__).with_name("own.json")


class Plan(NamedTuple):
    """What a run will do, and its expected result.

    Args:
        material: its fingerprint.
        depth: number of blocks; all other sizes follow from it.
        minutes: as requested.
        steps: that these minutes allow on this machine.
        seconds: per step, measured.
        passes: how often the run reads its material.
        dropout: 0.0 unless it reads everything more than four times.
        pilots: steps and bits per character of the two short runs.
        expected, low, high: held-out bits per character, and an interval.
    """

    material: str
    depth: int
    minutes: float
    steps: int
    seconds: float
    passes: float
    dropout: float
    pilots: tuple[tuple[int, float], ...]
    expected: float
    low: float
    high: float

    def __str__(self) -> str:
        (a, first), (b, second) = self.pilots
        more = ", and more would add little" if self.passes > MOST_PASSES - 1 else ""
        return (
            f"A step takes {self.seconds * 1000:.0f} ms here, so {self.steps:,} steps take "
            f"{duration(self.steps * self.seconds)}: {self.passes:.1f} times through your "
            f"material{more}.\n"
            f"Expected: {digits(self.expected)} bits per character on what is held out, between "
            f"{digits(self.low)} and {digits(self.high)}. Two short runs reached {digits(first)} "
            f"after {a} steps and {digits(second)} after {b}, and a power law goes on as a "
            "straight line on log axes. How far off that line was in our runs on other texts gives "
            "the interval, cut at the second short run; yours may be further off."
        )


def duration(seconds: float) -> str:
    """Return a time in words: seconds below two minutes, minutes below two hours."""
    if seconds < 120:
        return f"{max(1, round(seconds))} second{'s' * (round(seconds) > 1)}"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def digits(bits: float) -> str:
    """Return bits with two decimals; below a tenth, with two significant digits."""
    return f"{bits:.2f}" if bits >= 0.1 or bits == 0 else f"{bits:.2g}"


def build(material: Material, tokenizer: Tokenizer, depth: int, dropout: float = 0.0) -> nn.Module:
    """Return an untrained model: a GPT for a text, the paper's translator for pairs.

    Depth sets all sizes: d_model is 32 times the depth, the number of heads twice the depth.

    Source: nanochat (Karpathy 2025) for the single dial, with 64 dimensions per block.
    """
    sizes = {"d_model": 32 * depth, "n_heads": 2 * depth, "n_layers": depth, "d_ff": 128 * depth}
    choices = {"max_len": LENGTH, "dropout": dropout, "bias": False, "tie_embeddings": False}
    text = material.kind == "text"
    choices |= {"norm_position": "pre"} if text else {"norm_position": "post", "pad_id": 0}
    torch.manual_seed(0)
    kind = DecoderOnlyTransformer if text else EncoderDecoderTransformer
    return kind(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **choices))


def tokenizer_of(material: Material) -> Tokenizer:
    """Train byte pairs, which can write any alphabet; a longer text gets more of them."""
    characters = sum(map(len, material.texts))
    return BytePairTokenizer.train(material.texts, min(1000, 300 + characters // 200))


def short_enough(material: Material, tokenizer: Tokenizer) -> Material:
    """Drop the pairs with a sentence that is too long for the model.

    Raises:
        ValueError: too few pairs remain.
    """
    if material.kind == "text":
        return material
    training = [pair for pair in material.training if _fits(pair, tokenizer)]
    held_out = [pair for pair in material.held_out if _fits(pair, tokenizer)]
    left = len(material.training) + len(material.held_out) - len(training) - len(held_out)
    if min(len(training), len(held_out)) < LEAST_PAIRS // 10:
        raise ValueError(
            f"{left:,} pairs have a sentence of more than {LENGTH - 2} tokens, and only "
            f"{len(training) + len(held_out)} have none: split the sentences."
        )
    note = [f"{left:,} pairs are left out, longer than {LENGTH - 2} tokens."] if left else []
    notes = (*material.notes, *note)
    return material._replace(training=training, held_out=held_out, notes=notes)


def batches_of(material: Material, tokenizer: Tokenizer) -> EndlessBatches:
    """Return the training batches, in a reproducible order.

    Raises:
        ValueError: a text that is hardly longer than the model's window.
    """
    if material.kind == "text":
        return WindowBatches(tokenizer.encode(material.training), WINDOWS, LENGTH)
    return TranslationBatches(material.training, tokenizer, SENTENCES)


def _fits(pair: Pair, tokenizer: Tokenizer) -> bool:
    return all(len(tokenizer.encode(text)) < LENGTH - 1 for text in pair[:2])


def unseen_of(material: Material, tokenizer: Tokenizer) -> list[tuple[list[Batch], int]]:
    """Return each held-out piece's or pair's batches and its number of characters."""
    if material.kind == "pairs":
        return [(epoch([pair], tokenizer, 1), len(pair.target)) for pair in material.held_out]
    tests = []
    for piece in material.held_out:
        ids = tokenizer.encode(piece)
        batches = windows_in_order(ids, WINDOWS, min(LENGTH, len(ids) - 1))
        tests.append((batches, len(tokenizer.decode(ids[1:]))))  # the first is not predicted
    return tests


def bits_of_each(model: nn.Module, tests: Sequence[tuple[list[Batch], int]]) -> list[float]:
    """Return a model's bits per character on each held-out piece."""
    bits = []
    for batches, characters in tests:
        nats, n_tokens = total_loss(model, batches)
        bits.append(bits_per_character(nats / n_tokens, n_tokens, characters))
    return bits


def recipe(steps: int, d_model: int) -> TrainConfig:
    """Return the training config for this width: wider models get a lower rate."""
    return TrainConfig(
        steps=steps,
        learning_rate=0.3 / d_model,
        schedule="linear",
        warmup_steps=max(1, steps // 10),
        weight_decay=0.1,
    )


def make_plan(material: Material, tokenizer: Tokenizer, depth: int, minutes: float) -> Plan:
    """Measure this machine's speed, choose the steps, and forecast the result.

    Source: Muennighoff and others, "Scaling Data-Constrained Language Models" (2023), for how often
    a text may be read: up to 4 times is as good as new text, after 16 little is gained.
    """
    batches, tests = batches_of(material, tokenizer), unseen_of(material, tokenizer)
    seconds = seconds_per_step(build(material, tokenizer, depth), batches)
    begun = time.perf_counter()
    bits_of_each(build(material, tokenizer, depth), tests)
    left = 60 * minutes - MEASUREMENTS * (time.perf_counter() - begun)
    affordable = int(left / seconds / (1 + sum(1 / part for part in PILOTS)))
    of_a_pass = steps_of_a_pass(material, batches)
    steps = max(LEAST_STEPS, min(affordable, math.ceil(MOST_PASSES * of_a_pass)))
    passes = steps / of_a_pass
    dropout = 0.1 if passes > 4 else 0.0
    pilots = []
    for part in PILOTS:
        model = build(material, tokenizer, depth, dropout)
        short = max(2, steps // part)
        train(model, batches, recipe(short, model.config.d_model))
        bits = bits_of_each(model, tests)
        pilots.append((short, sum(bits) / len(bits)))
    run = material.fingerprint, depth, minutes, steps, seconds, passes, dropout, tuple(pilots)
    return Plan(*run, *foresee(pilots, steps, stored_misses(material.kind)))


def seconds_per_step(model: nn.Module, batches: EndlessBatches) -> float:
    """Return how long a step takes here, after two warm-up steps."""
    steps = 10
    config, history, each = recipe(steps + 2, model.config.d_model), History(), iter(batches)
    optimizer = make_optimizer(model, config)
    for step in range(steps + 2):
        if step == 2:
            begun = time.perf_counter()
        training_step(model, next(each), optimizer, config, history)
    return (time.perf_counter() - begun) / steps


def steps_of_a_pass(material: Material, batches: EndlessBatches) -> float:
    """Return how many steps read all the material once."""
    if isinstance(batches, WindowBatches):
        return len(batches.ids) / (WINDOWS * LENGTH)
    return len(material.training) / SENTENCES


def foresee(
    pilots: Sequence[tuple[int, float]], steps: int, misses: Sequence[float] = (1.0,)
) -> tuple[float, float, float]:
    """Extrapolate the power law of short runs: loss = a * steps ** -b, without a floor.

    Args:
        pilots: steps and loss of each; each had its own complete schedule.
        steps: of the long run.
        misses: reached / forecast ratios of n earlier runs. If the next run is like them, it lies
            between the least and the largest with a probability of (n - 1) / (n + 1).

    Returns:
        The expected loss, the law times the median miss, and the lowest and highest loss that the
        misses imply; none is above the last short run's.

    Source: Kaplan and others (2020); lesson 15 fits the law with size and text together.
    Differs: without a floor, which two short runs cannot show. So the forecast is too low once
        everything learnable is learned, and too high where a translator suddenly discovers which
        words belong together; both are among the misses. With the exponent of lesson 15's law and a
        floor, the stored runs on texts are missed by up to a factor of 5; without, by less than 2.
    """
    foreseen, last = power_law(pilots, steps), pilots[-1][1]
    return tuple(min(foreseen * of(misses), last) for of in (median, min, max))


def power_law(pilots: Sequence[tuple[int, float]], steps: int) -> float:
    """Return the loss at `steps` on the log-log line through short runs."""
    sizes, losses = zip(*pilots, strict=True)
    _, a, b = fit_power_law(sizes, losses, [0.0])
    return a * steps**-b


def stored_misses(kind: str) -> list[float]:
    """Return the reached / forecast ratios of `measure_own`'s runs of this kind.

    Raises:
        ValueError: the file is missing or damaged.
    """

    def missed(runs: list[dict]) -> list[float]:
        """Return each run's reached / forecast ratio."""
        return [run["reached"] / run["foreseen"] for run in runs if run["kind"] == kind]

    return read_stored(STORED, f"{__package__}.measure_own", make=missed)


def kept_plan(path: Path, make: Callable[[], Plan]) -> Plan:
    """Return the plan stored in a file; if there is none, make it and store it.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.exists():
        plan = make()
        write_atomically(path, json.dumps(plan._asdict(), indent=1).encode())
        return plan
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Plan(**facts | {"pilots": tuple((int(n), float(x)) for n, x in facts["pilots"])})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}): move its folder away, and call again."
        ) from error
