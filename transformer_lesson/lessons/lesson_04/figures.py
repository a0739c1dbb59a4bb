"""One picture: what the absence of heads costs, with and without another one.

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
    line: tuple[str, int],
) -> Figure:
    """Return two columns of bars, one for each condition, with a bar and its 95 % interval a case.

    Args:
        title: the claim that the figure supports.
        cases: the rows, from top to bottom.
        right: two conditions, by name: how many are right in each case.
        of: how many were asked.
        line: the name of a count to compare with, and the count.
    """
    listed = [
        f"{name}: " + ", ".join(f"{case} {n}" for case, n in zip(cases, counts, strict=True))
        for name, counts in right.items()
    ]
    alt = f"{title}. Right, of {of}, by the heads left in encoder block 1: {'; '.join(listed)}."
    picture, both = figure(title, alt, 7.5, 3.3, columns=2)
    for axes, (name, counts), color in zip(both, right.items(), COLORS, strict=False):
        intervals = [wilson(count, of) for count in counts]
        beyond = [
            [n - of * low, of * high - n] for n, (low, high) in zip(counts, intervals, strict=True)
        ]
        axes.barh(range(len(cases)), counts, color=color, alpha=0.45, height=0.7)
        error = {"fmt": "none", "ecolor": color, "elinewidth": 2}
        axes.errorbar(counts, range(len(cases)), xerr=np.maximum(np.transpose(beyond), 0), **error)
        for y, count in enumerate(counts):
            axes.text(0.02 * of, y, str(count), va="center", fontsize=10)
        axes.vlines(line[1], -0.5, len(cases) - 0.55, linestyle=":", color="gray")
        axes.text(line[1], len(cases) - 0.3, f"{line[0]}: {line[1]}", ha="center", fontsize=8.5)
        axes.set_title(name, fontsize=10.5, color=color)
        axes.set(xlim=(0, of), ylim=(len(cases) - 0.1, -0.5), xticks=(), yticks=())
        axes.spines["bottom"].set_visible(False)
    both[0].set_yticks(range(len(cases)), cases, fontsize=10)
    both[0].set_ylabel("heads left in encoder block 1")
    for axes in both:
        axes.tick_params(length=0)
    picture.text(
        0.6, 0.03, f"articles right, of {of}; line: 95 % interval", ha="center", fontsize=9
    )
    picture.subplots_adjust(left=0.26, right=0.97, bottom=0.1, top=0.8, wspace=0.08)
    return picture
