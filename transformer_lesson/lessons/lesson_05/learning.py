"""Figures of what several runs learn: shares of words, or losses, beside what needs no model."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable
from transformer_lesson.intervals import wilson

INK = "#566372"
WINDOW = 10  # steps averaged for one point


def shares_right(
    title: str,
    right: Mapping[str, int],
    total: int,
    levels: Mapping[str, float],
    others: Mapping[str, Sequence[float]],
) -> Figure:
    """Return a figure with a row per run: the share of words that are right, its 95 % interval.

    The interval is that of drawing words; how runs differ, the further runs show. So that both can
    be seen, the axis is cut between the runs below one half and those above.

    Args:
        title: the claim that the figure supports.
        right: by name, from top to bottom, how many words are right.
        total: how many were asked.
        levels: shares to compare with, by name.
        others: by name, the shares of further runs.
    """
    shares = ", ".join(f"{name} {n / total:.2f}" for name, n in right.items())
    marks = ", ".join(f"{name}: {share:.2f}" for name, share in levels.items())
    alt = f"Share of {total:,} words right: {shares}. {marks}."
    picture, panels = figure(title, alt, 7.5, 2.9, columns=2)
    stretches = [_stretch(right, total, others, high) for high in (False, True)]
    widest = max(high - low for low, high in stretches) + 0.06
    for axes, (low, high) in zip(panels, stretches, strict=True):
        begin, end = (low + high - widest) / 2, (low + high + widest) / 2
        for name, share in levels.items():
            if begin < share < end:
                axes.axvline(share, color=INK, linewidth=1, linestyle="--")
                axes.text(share, -0.6, name, color=INK, fontsize=9, ha="center", va="bottom")
        for y, (name, n) in enumerate(right.items()):
            if begin < n / total < end:
                _run(axes, y, n, total, others[name])
        axes.set(xlim=(begin, end), ylim=(len(right) - 0.5, -0.5), yticks=range(len(right)))
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticklabels([printable(name) for name in right], fontsize=9)
    panels[1].set_yticklabels([])
    panels[1].spines["left"].set_visible(False)
    note = f"share right of {total:,} words (axis cut); blue: 95 % interval; orange: earlier runs"
    picture.text(0.61, 0.03, note, ha="center", fontsize=9)
    picture.subplots_adjust(left=0.27, right=0.95, bottom=0.19, top=0.8, wspace=0.08)
    return picture


def _stretch(right: Mapping, total: int, others: Mapping, high: bool) -> tuple[float, float]:
    """Return the ends of what the runs above one half reach, or of those below."""
    chosen = {name: n for name, n in right.items() if (n / total > 0.5) == high}
    reached = [end for n in chosen.values() for end in wilson(n, total)]
    reached += [share for name in chosen for share in others[name]]
    return min(reached), max(reached)


def _run(axes: Axes, y: int, n: int, total: int, others: Sequence[float]) -> None:
    """Draw a run's share and interval, the further runs, and the share in figures above."""
    low, high = wilson(n, total)
    axes.hlines(y, low, high, color=COLORS[0], linewidth=9, alpha=0.3)
    axes.plot(n / total, y, "o", color=COLORS[0], markersize=5)
    axes.plot(others, [y] * len(others), "|", color=COLORS[1], markersize=12, markeredgewidth=2)
    left = n / total < 0.5
    place = min([low, *others]) - 0.004 if left else max([high, *others]) + 0.004
    side = "right" if left else "left"
    axes.text(place, y, f"{n / total:.2f}", ha=side, va="center", fontsize=9)


def settings(
    title: str,
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    level: tuple[str, float],
    highest: float,
) -> Figure:
    """Return a figure of the same for groups of runs, side by side.

    Args:
        title: the claim that the figure supports.
        groups: by name, the runs of one setting; the first has all names.
        level: a loss to compare with, and its name.
        highest: the end of the loss axis; higher points are not shown.
    """
    ends = " ".join(f"{printable(name)}: {_ends(runs)}." for name, runs in groups.items())
    alt = f"Loss against steps. At the end, {ends} {level[0]}: {level[1]:.2f}."
    picture, panels = figure(title, alt, 9.0, 3.4, columns=len(groups))
    for axes, (name, runs) in zip(panels, groups.items(), strict=True):
        _draw(axes, runs, highest)
        axes.axhline(level[1], color=INK, linewidth=1, linestyle="--")
        axes.set_title(printable(name), fontsize=10)
    panels[0].set_ylabel("loss, nats per word")
    panels[0].legend(fontsize=9)
    panels[-1].text(5, level[1] + 0.1, level[0], color=INK, fontsize=9)
    picture.subplots_adjust(wspace=0.15, top=0.8)
    return picture


def _draw(axes, runs: Mapping[str, Sequence[float]], top: float) -> None:
    for i, (name, run) in enumerate(runs.items()):
        points = _means(run)
        x = WINDOW * (np.arange(len(points)) + 0.5)
        axes.plot(x, points, color=COLORS[i % 7], linewidth=1.8, label=printable(name))
    axes.set(xlabel="step", ylim=(0, top), xlim=(0, max(map(len, runs.values()))))


def _ends(runs: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{printable(name)} at {_means(run)[-1]:.2f}" for name, run in runs.items())


def _means(run: Sequence[float]) -> np.ndarray:
    end = max(1, len(run) // WINDOW) * WINDOW
    return as_array(run)[:end].reshape(-1, min(WINDOW, len(run))).mean(axis=1)
