"""What small translators had learned at several rates, as `measure_rates` stored it, and a figure.

Every run read 4,800 sentences once; its loss is that on 300 new ones. Three seeds each.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.stored import read_stored

MADE_BY = "transformer_lesson.lessons.lesson_08.measure_rates"
ASIDE = 1.07
"""The factor by which each group's dots are to the right of the group before."""


class Run(NamedTuple):
    """One training: blocks a side, sentences in a batch, steps of warm-up, rate, seed, loss."""

    n_layers: int
    batch: int
    warmup: int
    rate: float
    seed: int
    loss: float


def stored() -> list[Run]:
    """Return all runs.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(
        Path(__file__).with_name("rates.json"), MADE_BY, lambda runs: [Run(**run) for run in runs]
    )


def of_rate(runs: Iterable[Run]) -> dict[float, list[float]]:
    """Return the losses of all seeds by rate, from the lowest rate on."""
    losses: dict[float, list[float]] = {}
    for run in sorted(runs, key=lambda run: (run.rate, run.seed)):
        losses.setdefault(run.rate, []).append(run.loss)
    return losses


def best(runs: Iterable[Run]) -> tuple[float, list[float]]:
    """Return the rate with the lowest mean loss, and its losses seed by seed."""
    losses = of_rate(runs)
    rate = min(losses, key=lambda rate: (fmean(losses[rate]), rate))
    return rate, losses[rate]


def drawn(title: str, groups: Mapping[str, Sequence[Run]]) -> Figure:
    """Return a figure of the loss by rate for each group: a dot for a run, a line for the mean.

    Each group is shifted a little, so that no dot hides another's.

    Args:
        title: the claim that the figure supports.
        groups: the runs to compare, by name.
    """
    ends = {name: best(runs) for name, runs in groups.items()}
    minima = (
        f"{name}: best {fmean(values):.2f}, at {rate:g}" for name, (rate, values) in ends.items()
    )
    drawing, axes = figure(title, f"Loss against rate. {'; '.join(minima)}.", 6.5, 3.2)
    for i, (name, runs) in enumerate(groups.items()):
        color, marker = COLORS[i], "osD"[i]
        aside = ASIDE ** (i - (len(groups) - 1) / 2)  # a factor, for the axis is logarithmic
        losses = {rate * aside: values for rate, values in of_rate(runs).items()}
        axes.plot(
            list(losses), [fmean(values) for values in losses.values()], color=color, label=name
        )
        points = [(rate, loss) for rate, values in losses.items() for loss in values]
        axes.plot(*zip(*points, strict=True), marker, color=color, markersize=4)
    axes.set(xscale="log", xlabel="full learning rate", ylabel="loss on new sentences, nats")
    rates = sorted({run.rate for runs in groups.values() for run in runs})
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.minorticks_off()
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(groups)}
    for handle, marker in zip(
        axes.legend(frameon=False, **above).legend_handles, "osD", strict=False
    ):
        handle.set(marker=marker, markersize=4)
    drawing.subplots_adjust(bottom=0.18)
    return drawing
