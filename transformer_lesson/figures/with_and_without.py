"""One figure, which two lessons draw: counts under two conditions, with a head and without it."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.intervals import wilson


def with_and_without(
    title: str,
    cases: Sequence[str],
    counted: Mapping[str, Sequence[int]],
    of: int,
    cases_name: str,
    counts_name: str,
    line: tuple[str, int] | None = None,
) -> Figure:
    """Return two columns of bars, one for each condition, with a bar and its 95 % interval a case.

    Args:
        title: the claim that the figure supports.
        cases: the rows, from top to bottom.
        counted: two conditions, by name: a count for each case.
        of: how many there are.
        cases_name, counts_name: what the rows are, and what is counted.
        line: the name of a count to compare with, and the count.
    """
    listed = [
        f"{name}: " + ", ".join(f"{case} {n}" for case, n in zip(cases, counts, strict=True))
        for name, counts in counted.items()
    ]
    alt = f"{title}. {counts_name}, of {of}; {cases_name}: {'; '.join(listed)}."
    picture, both = figure(title, alt, 7.5, 1.5 + 0.3 * len(cases), columns=2)
    for axes, (name, counts), color in zip(both, counted.items(), COLORS, strict=False):
        _draw_bars(axes, counts, of, color, line)
        axes.set_title(name, fontsize=10.5, color=color)
    both[0].set_yticks(range(len(cases)), cases, fontsize=10)
    both[0].set_ylabel(cases_name)
    picture.text(0.6, 0.03, f"{counts_name}, of {of}; line: 95 % interval", ha="center", fontsize=9)
    below = 0.1 if line else 0.12
    picture.subplots_adjust(left=0.26, right=0.97, bottom=below, top=0.8, wspace=0.08)
    return picture


def _draw_bars(
    axes: Axes, counts: Sequence[int], of: int, color: str, line: tuple[str, int] | None
) -> None:
    """Draw a bar for each count, its number and its interval, and the line to compare with."""
    rows = range(len(counts))
    ends = np.array([wilson(count, of) for count in counts]).T * of
    beyond = np.maximum([counts - ends[0], ends[1] - counts], 0)
    axes.barh(rows, counts, color=color, alpha=0.45, height=0.7)
    axes.errorbar(counts, rows, xerr=beyond, fmt="none", ecolor=color, elinewidth=2)
    for y, (count, high) in enumerate(zip(counts, ends[1], strict=True)):
        beside = 0 if count > 0.15 * of else high
        axes.text(beside + 0.02 * of, y, str(count), va="center", fontsize=10)
    if line:
        name, at = line
        axes.vlines(at, -0.5, len(counts) - 0.55, linestyle=":", color="gray")
        axes.text(at, len(counts) - 0.3, f"{name}: {at}", ha="center", fontsize=8.5)
    last = len(counts) - (0.1 if line else 0.5)
    axes.set(xlim=(0, of), ylim=(last, -0.5), xticks=(), yticks=())
    axes.tick_params(length=0)
    axes.spines["bottom"].set_visible(False)
