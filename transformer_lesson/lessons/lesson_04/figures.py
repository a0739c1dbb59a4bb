"""One picture: what the absence of heads costs, in two rows of cases.

Short because there is a single figure.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.intervals import wilson


def with_and_without(
    title: str,
    cases: Sequence[str],
    right: Mapping[str, Sequence[int]],
    of: int,
    lines: Mapping[str, int],
) -> Figure:
    """Return a row for each case, with a dot and its 95 % interval for each of two conditions.

    Args:
        title: the claim that the figure supports.
        cases: the rows, from top to bottom.
        right: two conditions, by name: how many are right in each case.
        of: how many were asked.
        lines: marked counts, by name.
    """
    listed = [
        f"{name}: " + ", ".join(f"{case} {n}" for case, n in zip(cases, counts, strict=True))
        for name, counts in right.items()
    ]
    picture, axes = figure(title, f"{title}. Right, of {of}: {'; '.join(listed)}.", 8.0, 3.6)
    apart = max(range(len(cases)), key=lambda y: abs(np.subtract(*(c[y] for c in right.values()))))
    for name, x in lines.items():
        axes.axvline(x, linestyle=":", color="gray")
        axes.text(x, -0.75, f"{name}: {x}", ha="center", fontsize=9)
    for (name, counts), color, off in zip(right.items(), COLORS, (-0.12, 0.12), strict=False):
        for y, count in enumerate(counts):
            low, high = (of * share for share in wilson(count, of))
            axes.hlines(y + off, low, high, color=color, linewidth=5, alpha=0.3)
        rows = [y + off for y in range(len(counts))]
        axes.plot(counts, rows, "o", color=color, markersize=6, clip_on=False)
        look = {"color": color, "va": "center", "fontsize": 10}
        axes.text(counts[apart] + 0.075 * of, apart + off, name, **look)
    axes.set(xlim=(0, of), ylim=(len(cases) - 0.5, -0.6))
    axes.set_xlabel(f"articles right, of {of}; bar: 95 % interval")
    axes.set_yticks(range(len(cases)), cases)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.3)
    picture.subplots_adjust(left=0.33, right=0.8, bottom=0.15, top=0.8)
    return picture
