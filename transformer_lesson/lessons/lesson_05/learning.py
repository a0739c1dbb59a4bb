"""A figure of several runs' losses that shows which of them learn.

Runs are smoothed and may differ in length, and a level marks what they have to get below.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure, name_lines
from transformer_lesson.files import printable


def losses(
    title: str,
    runs: Mapping[str, Sequence[float]],
    level: tuple[str, float] | None = None,
    window: int = 10,
    highest: float | None = None,
) -> Figure:
    """Return the smoothed losses of some runs against their steps.

    Args:
        title: the claim that the figure supports.
        runs: by name, the loss of each step; a run that diverged is shorter.
        level: a loss to compare with, and its name.
        window: steps averaged for one point.
        highest: the end of the loss axis; higher points are not shown.
    """
    smooth = {name: _means(as_array(run), window) for name, run in runs.items()}
    ends = {name: points[-1] for name, points in smooth.items()}
    told = ", ".join(f"{printable(name)} at {end:.2f}" for name, end in ends.items())
    alt = f"Loss against steps. At the end: {told}."
    if level:
        alt += f" {level[0]}: {level[1]:.2f}."
    made, axes = figure(title, alt, width=7.5, height=3.8)
    last = max(map(len, runs.values()))
    top = highest or 1.05 * max(map(max, smooth.values()))
    axes.set(xlabel="step", ylabel="loss, nats per word", ylim=(0, top), xlim=(0, last))
    for i, (name, points) in enumerate(smooth.items()):
        x = window * (np.arange(len(points)) + 0.5)
        axes.plot(x, points, color=COLORS[i % 7], linewidth=1.8, label=printable(name))
    name_lines(axes)
    if level:
        axes.axhline(level[1], color="#566372", linewidth=1, linestyle="--")
        axes.text(last * 0.01, level[1], level[0], color="#566372", va="bottom", fontsize=9)
    made.subplots_adjust(right=0.76)
    return made


def _means(values: np.ndarray, window: int) -> np.ndarray:
    whole = max(1, len(values) // window) * window
    return values[:whole].reshape(-1, min(window, len(values))).mean(axis=1)
