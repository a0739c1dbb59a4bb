"""From depth and minutes to sizes and steps, and what they will reach, said beforehand."""

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
PILOTS = 20, 5  # the two short runs have a 20th and a 5th of the steps
LEAST_STEPS, MOST_PASSES, DEEPEST = 64, 16, 8
MEASUREMENTS = 5  # of what is held out, in time: both pilots, the end, the translations
STORED = Path(__file__).with_name("own.json")


class Plan(NamedTuple):
    """What a run will do, and what it is expected to reach.

    Args:
        material: its fingerprint.
        depth: number of blocks; all other sizes follow from it.
        minutes: that were asked for.
        steps: that these minutes allow on this machine.
        seconds: of a step, measured.
        passes: how often the run reads its material.
        dropout: 0.0 unless it reads everything more than four times.
        pilots: steps and bits per character of the two short runs.
        expected, low, high: bits per character on what is held out, and an interval.
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
            "straight line on log "
            "axes. "
            "How far off that line was in earlier runs gives the interval."
        )


def duration(seconds: float) -> str:
    """A time for a sentence: seconds below two minutes, minutes below two hours."""
    if seconds < 120:
        return f"{max(1, round(seconds))} second{'s' * (round(seconds) > 1)}"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def digits(bits: float) -> str:
    """Two decimals, or of what is smaller than a tenth two digits."""
    return f"{bits:.2f}" if bits >= 0.1 or bits == 0 else f"{bits:.2g}"


def build(material: Material, tokenizer: Tokenizer, depth: int, dropout: float = 0.0) -> nn.Module:
    """Return an untrained model: a GPT for a text, the paper's translator for pairs.

    Depth sets all sizes: d_model is 32 times, the number of heads twice the depth.

    Source: nanochat (Karpathy 2025) for one dial, with 64 numbers a block.
    """
    sizes = {"d_model": 32 * depth, "n_heads": 2 * depth, "n_layers": depth, "d_ff": 128 * depth}
    choices = {"max_len": LENGTH, "dropout": dropout, "bias": False, "tie_embeddings": False}
    text = material.kind == "text"
    choices |= {"norm_position": "pre"} if text else {"norm_position": "post", "pad_id": 0}
    torch.manual_seed(0)
    kind = DecoderOnlyTransformer if text else EncoderDecoderTransformer
    return kind(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **choices))


def tokenizer_of(material: Material) -> Tokenizer:
    """Train byte pairs: they write any alphabet, and a longer text earns more of them."""
    characters = sum(map(len, material.texts))
    return BytePairTokenizer.train(material.texts, min(1000, 300 + characters // 200))


def short_enough(material: Material, tokenizer: Tokenizer) -> Material:
    """Leave out the pairs with a sentence that is longer than what the model reads.

    Raises:
        ValueError: too few pairs are left.
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
    """Return what the model learns from, in an order that is the same each time.

    Raises:
        ValueError: a text that is hardly longer than what the model reads at once.
    """
    if material.kind == "text":
        return WindowBatches(tokenizer.encode(material.training), WINDOWS, LENGTH)
    return TranslationBatches(material.training, tokenizer, SENTENCES)


def _fits(pair: Pair, tokenizer: Tokenizer) -> bool:
    return all(len(tokenizer.encode(text)) < LENGTH - 1 for text in pair[:2])


def unseen_of(material: Material, tokenizer: Tokenizer) -> list[tuple[list[Batch], int]]:
    """Return the batches of each held-out piece or pair, and how many characters they spell."""
    if material.kind == "pairs":
        return [(epoch([pair], tokenizer, 1), len(pair.target)) for pair in material.held_out]
    found = []
    for piece in material.held_out:
        ids = tokenizer.encode(piece)
        batches = windows_in_order(ids, WINDOWS, min(LENGTH, len(ids) - 1))
        found.append((batches, len(tokenizer.decode(ids[1:]))))  # the first is not predicted
    return found


def bits_of_each(model: nn.Module, tests: Sequence[tuple[list[Batch], int]]) -> list[float]:
    """Return a model's bits per character on each held-out piece."""
    found = []
    for batches, characters in tests:
        nats, n_tokens = total_loss(model, batches)
        found.append(bits_per_character(nats / n_tokens, n_tokens, characters))
    return found


def recipe(steps: int, d_model: int) -> TrainConfig:
    """Return how a model of this width is trained: the rate falls with the width."""
    return TrainConfig(
        steps=steps,
        learning_rate=0.3 / d_model,
        schedule="linear",
        warmup_steps=max(1, steps // 10),
        weight_decay=0.1,
    )


def make_plan(material: Material, tokenizer: Tokenizer, depth: int, minutes: float) -> Plan:
    """Measure this machine's speed, choose the steps, and foresee what they reach.

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


def seconds_per_step(model: nn.Module, batches: EndlessBatches, steps: int = 10) -> float:
    """Return how long a step takes here, after two that do not count."""
    config, history, each = recipe(steps + 2, model.config.d_model), History(), iter(batches)
    optimizer = make_optimizer(model, config)
    for step in range(steps + 2):
        if step == 2:
            begun = time.perf_counter()
        training_step(model, next(each), optimizer, config, history)
    return (time.perf_counter() - begun) / steps


def steps_of_a_pass(material: Material, batches: EndlessBatches) -> float:
    """Return how many steps read as much as there is, once."""
    if isinstance(batches, WindowBatches):
        return len(batches.ids) / (WINDOWS * LENGTH)
    return len(material.training) / SENTENCES


def foresee(
    pilots: Sequence[tuple[int, float]], steps: int, misses: Sequence[float] = (1.0,)
) -> tuple[float, float, float]:
    """Go on with the power law of short runs: loss = a * steps ** -b, without a floor.

    Args:
        pilots: steps and loss of each; each had a schedule of its own, which ended with it.
        steps: of the long run.
        misses: reached / foreseen of n earlier runs. Where the next run is like them, it lies
            between the least and the largest with a probability of (n - 1) / (n + 1).

    Returns:
        What is expected, the law times the median of the misses, and the lowest and the highest of
        what the misses make of it; none is above the last short run, as more steps do no harm.

    Source: Kaplan and others (2020); lesson 15 fits the law with size and text together.
    Differs: without a floor, which two short runs cannot show. So it foresees too little where all
        is learned that can be, and too much where a translator suddenly finds which words belong
        together: both are among the misses. With the exponent of lesson 15's law and a floor, the
        stored runs on texts are missed by up to a factor of 5; without, by less than 2.
    """
    foreseen, last = power_law(pilots, steps), pilots[-1][1]
    return tuple(min(foreseen * of(misses), last) for of in (median, min, max))


def power_law(pilots: Sequence[tuple[int, float]], steps: int) -> float:
    """Return the loss at so many steps on the line through short runs, in logarithms."""
    sizes, losses = zip(*pilots, strict=True)
    _, a, b = fit_power_law(sizes, losses, [0.0])
    return a * steps**-b


def stored_misses(kind: str) -> list[float]:
    """Return reached / foreseen of the runs of this kind that `measure_own` made.

    Raises:
        ValueError: the file is missing or damaged.
    """

    def missed(runs: list[dict]) -> list[float]:
        """Return each run's quotient."""
        return [run["reached"] / run["foreseen"] for run in runs if run["kind"] == kind]

    return read_stored(STORED, f"{__package__}.measure_own", make=missed)


def kept_plan(path: Path, make: Callable[[], Plan]) -> Plan:
    """Return the plan of a file; where there is none, make it and keep it there.

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
