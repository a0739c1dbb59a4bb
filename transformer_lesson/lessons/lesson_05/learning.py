"""A figure of several runs' losses that shows which of them learn.

Runs are smoothed and may differ in length, and a level marks what they have to get below.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure, name_lines
from transformer_lesson.files import printable

WINDOW = 10  # steps averaged for one point


def losses(title: str, runs: Mapping[str, Sequence[float]]) -> Figure:
    """Return the smoothed losses of some runs, by name, against their steps.

    Args:
        title: the claim that the figure supports.
        runs: by name, the loss of each step.
    """
    made, axes = figure(title, f"Loss against steps. At the end: {_ends(runs)}.", 7.5, 3.8)
    _draw(axes, runs, 1.05 * max(max(_means(run)) for run in runs.values()))
    axes.set_ylabel("loss, nats per word")
    name_lines(axes)
    made.subplots_adjust(right=0.76)
    return made


def settings(
    title: str,
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    level: tuple[str, float],
    highest: float,
) -> Figure:
    """Return the same for groups of runs, side by side.

    Args:
        title: the claim that the figure supports.
        groups: by name, the runs of one setting; the first has all names.
        level: a loss to compare with, and its name.
        highest: the end of the loss axis; higher points are not shown.
    """
    told = " ".join(f"{printable(name)}: {_ends(runs)}." for name, runs in groups.items())
    alt = f"Loss against steps. At the end, {told} {level[0]}: {level[1]:.2f}."
    made, panels = figure(title, alt, 9.0, 3.4, columns=len(groups))
    for axes, (name, runs) in zip(panels, groups.items(), strict=True):
        _draw(axes, runs, highest)
        axes.axhline(level[1], color="#566372", linewidth=1, linestyle="--")
        axes.set_title(printable(name), fontsize=10)
    panels[0].set_ylabel("loss, nats per word")
    panels[0].legend(fontsize=9)
    panels[-1].text(5, level[1] + 0.1, level[0], color="#566372", fontsize=9)
    made.subplots_adjust(wspace=0.15, top=0.8)
    return made


def _draw(axes, runs: Mapping[str, Sequence[float]], top: float) -> None:
    for i, (name, run) in enumerate(runs.items()):
        points = _means(run)
        x = WINDOW * (np.arange(len(points)) + 0.5)
        axes.plot(x, points, color=COLORS[i % 7], linewidth=1.8, label=printable(name))
    axes.set(xlabel="step", ylim=(0, top), xlim=(0, max(map(len, runs.values()))))


def _ends(runs: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{printable(name)} at {_means(run)[-1]:.2f}" for name, run in runs.items())


def _means(run: Sequence[float]) -> np.ndarray:
    whole = max(1, len(run) // WINDOW) * WINDOW
    return as_array(run)[:whole].reshape(-1, min(WINDOW, len(run))).mean(axis=1)
