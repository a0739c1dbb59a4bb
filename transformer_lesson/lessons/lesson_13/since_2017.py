"""The models of 2017 and of 2026 at the same size, and small runs that compare settings.

All models learn to predict the next character of CPython's manual. `measure_paper_vs_practice`
makes the stored curves with this module's functions, so that a lesson can repeat a run.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
from torch import nn

from transformer_lesson.caching import copied
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.batches import Batch, windows_in_order
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import History, TrainingDiverged, train
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import StepReport

HERE = Path(__file__).parent
LENGTH, BATCH_SIZE = 64, 16  # characters in a window, windows in a batch
VALIDATED = 4096  # characters of validation text in a comparison

PAPER_CHOICES = {
    "norm_position": "post",
    "norm": "layer",
    "activation": "relu",
    "positions": "sinusoidal",
    "bias": True,
}
CHANGES = {
    "pre-norm": {"norm_position": "pre"},
    "RMSNorm": {"norm": "rms"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "no biases": {"bias": False},
    "grouped heads": {"n_kv_heads": 2},
}
"""What changed since 2017, in the order in which `ladder` adds it."""

NORM_POSITIONS = ("post", "pre")
WARMUPS = (0, 20, 100)
INITIALIZATIONS = ("xavier", "small")
GRID_SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 6, "d_ff": 256}
GRID_TRAINING = TrainConfig(steps=200, learning_rate=3e-3, schedule="constant", clip=None)
GRID_EVERY = 5  # steps averaged in one stored point


class Setting(NamedTuple):
    """One point of the grid: norm position, length of the warm-up, initialization."""

    norm_position: str
    warmup_steps: int
    initialization: str

    def __str__(self) -> str:
        return " ".join(map(str, self))


class Text(NamedTuple):
    """The manual as character ids, and batches to validate on."""

    tokenizer: CharacterTokenizer
    training: list[int]
    validation: list[Batch]


@copied
def text() -> Text:
    """Return the manual, cut into characters."""
    parts = manual.split()
    tokenizer = CharacterTokenizer.train([parts.training])
    held_out = tokenizer.encode(parts.validation)[: VALIDATED + 1]
    return Text(tokenizer, tokenizer.encode(parts.training), windows_in_order(held_out, 64, LENGTH))


def paper_config() -> ModelConfig:
    """Return the small model of 2017: post-norm, LayerNorm, ReLU, sinusoids, biases."""
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256}
    vocab_size = text().tokenizer.vocab_size
    return ModelConfig(vocab_size, max_len=LENGTH, dropout=0.0, **sizes, **PAPER_CHOICES)


def same_size(config: ModelConfig, n_parameters: int) -> ModelConfig:
    """Return the config with the d_ff that brings the model closest to n_parameters."""

    def size(d_ff: int) -> int:
        with torch.device("meta"):  # shapes only
            return count_parameters(DecoderOnlyTransformer(replace(config, d_ff=d_ff)))

    per_column = size(2) - size(1)
    return replace(config, d_ff=max(1, 1 + round((n_parameters - size(1)) / per_column)))


def ladder() -> dict[str, ModelConfig]:
    """Return configs of equal size, from 2017's to 2026's, adding one change at a time."""
    first = paper_config()
    n_parameters = count_parameters(DecoderOnlyTransformer(first))
    taken = accumulate(CHANGES.values(), lambda before, change: before | change)
    return {"2017": first} | {
        f"+ {name}": same_size(replace(first, **choices), n_parameters)
        for name, choices in zip(CHANGES, taken, strict=True)
    }


def compare(
    configs: dict[str, ModelConfig],
    seeds: Sequence[int],
    steps: int = 150,
    on_step: Callable[[str, int, StepReport], object] | None = None,
) -> dict[str, list[History]]:
    """Train each model once per seed on the same batches; return its histories.

    Args:
        configs: each model's config by name.
        seeds: each gives new weights and new batches, the same batches for all models.
        steps: of each run.
        on_step: called with name, seed and report after each step.
    """
    config = TrainConfig(
        steps=steps, learning_rate=5e-3, schedule="cosine", warmup_steps=20, weight_decay=0.1
    )
    histories: dict[str, list[History]] = {name: [] for name in configs}
    for seed in seeds:
        for name, model_config in configs.items():
            torch.manual_seed(seed)
            model = DecoderOnlyTransformer(model_config)
            batches = WindowBatches(text().training, BATCH_SIZE, LENGTH, seed=seed)

            def report(report: StepReport, name=name, seed=seed) -> None:
                if on_step:
                    on_step(name, seed, report)

            options = {"validation": text().validation, "validate_every": 10}
            histories[name].append(train(model, batches, config, on_step=report, **options))
    return histories


class Verdict(NamedTuple):
    """What three seeds say about a change: see `verdict`."""

    mean: float
    low: float
    high: float
    says: str

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f}): {self.says}"


def verdict(before: Sequence[float], after: Sequence[float]) -> Verdict:
    """Compare two models seed by seed: both read the same batches.

    A difference counts if all seeds agree on its sign and its mean is larger than the distance
    between the largest and the smallest. With three seeds this is a rule, not a proof.

    Args:
        before, after: the final loss of each seed.
    """
    differences = [new - old for old, new in zip(before, after, strict=True)]
    mean, low, high = fmean(differences), min(differences), max(differences)
    counts = low * high > 0 and abs(mean) > high - low
    says = "inside the noise" if not counts else "lower loss" if mean < 0 else "higher loss"
    return Verdict(mean, low, high, says)


def initialize(model: nn.Module, how: str) -> None:
    """Reinitialize the weights of all linear layers.

    Args:
        model: any module; embeddings and norms are unchanged.
        how: "xavier", uniform with a range that preserves the input's variance, or "small", normal
            with a standard deviation of 0.02.

    Raises:
        ValueError: `how` is neither.

    Source: Glorot and Bengio (2010), equation 16; Radford et al., "GPT-2" (2019), section 2.3.
    """
    if how not in INITIALIZATIONS:
        raise ValueError(f"how is {how!r}, but it must be one of {', '.join(INITIALIZATIONS)}.")
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if how == "xavier":
                nn.init.xavier_uniform_(module.weight)
            else:
                nn.init.normal_(module.weight, std=0.02)


def run_setting(
    setting: Setting,
    seed: int,
    on_step: Callable[[StepReport], object] | None = None,
    steps: int = GRID_TRAINING.steps,
) -> list[float]:
    """Train six layers with one setting of the grid; return the loss of each step.

    A run that diverges returns the losses so far. Batches differ by seed only.

    Args:
        setting: norm position, warm-up, initialization.
        seed: of weights and batches.
        on_step: as for `train`.
        steps: stop after this many; the rate is constant, so shorter runs are prefixes of longer.
    """
    torch.manual_seed(seed)
    vocab_size = text().tokenizer.vocab_size
    config = ModelConfig(
        vocab_size, max_len=LENGTH, dropout=0.0, norm_position=setting.norm_position,
        tie_embeddings=False, **GRID_SIZES,
    )  # fmt: skip
    model = DecoderOnlyTransformer(config)
    initialize(model, setting.initialization)
    losses: list[float] = []

    def keep(report: StepReport) -> None:
        losses.append(report.loss)
        if on_step:
            on_step(report)

    batches = WindowBatches(text().training, BATCH_SIZE, LENGTH, seed=seed)
    try:
        config = replace(GRID_TRAINING, steps=steps, warmup_steps=setting.warmup_steps)
        train(model, batches, config, on_step=keep)
    except TrainingDiverged:
        return losses  # a failure is a result, too: its curve ends here
    return losses


def thinned(losses: Sequence[float], every: int = GRID_EVERY) -> list[float]:
    """Return the mean of every `every` losses, rounded to three decimals, as stored."""
    groups = [losses[i : i + every] for i in range(0, len(losses), every)]
    return [round(sum(group) / len(group), 3) for group in groups]


@copied
def stored_grid() -> dict[Setting, list[list[float]]]:
    """Return the stored curves of each setting, one per seed; see `thinned`.

    Raises:
        ValueError: the file is missing or damaged.
    """
    curves = read_stored(
        HERE / "paper_vs_practice.json", f"{__package__}.measure_paper_vs_practice"
    )
    return {
        Setting(position, warmup, how): curves[f"{position} {warmup} {how}"]
        for position in NORM_POSITIONS
        for warmup in WARMUPS
        for how in INITIALIZATIONS
    }


@copied
def stored_ladder() -> dict[str, list[list[float]]]:
    """Return each rung's stored validation losses, one list of (every tenth step) per seed.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(HERE / "since_2017.json", f"{__package__}.measure_paper_vs_practice")
