"""Before and after in one picture: how many answers of each topic were right."""

from collections.abc import Mapping

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.files import printable
from transformer_lesson.intervals import wilson

Count = tuple[int, int]
GRAY = "#566372"


def gains(title: str, rows: Mapping[str, tuple[Count, Count]]) -> Figure:
    """Return a figure with a line for each topic: a ring for before, a dot for after.

    Args:
        title: the claim that the figure supports.
        rows: by topic, from top to bottom, (right, asked) before and after; asked may be 0.
    """
    details = "; ".join(f"{printable(name)} {_counts(*pair)}" for name, pair in rows.items())
    alt = f"Right answers by topic, before and after: {details}."
    picture, axes = figure(title, alt, width=7.5, height=1.3 + 0.34 * len(rows))
    picture.subplots_adjust(left=0.25, right=0.72)
    for y, (before, after) in enumerate(rows.values()):
        if after[1]:
            axes.hlines(y, *wilson(*after), color=COLORS[0], linewidth=5, alpha=0.25, zorder=1.7)
            axes.plot(after[0] / after[1], y, "o", color=COLORS[0], markersize=8)
        if before[1] and after[1]:
            ends = before[0] / before[1], after[0] / after[1]
            axes.hlines(y, min(ends), max(ends), color=GRAY, linewidth=1, zorder=1.8)
        if before[1]:
            ring = {"markeredgecolor": COLORS[1], "markeredgewidth": 2, "zorder": 1.9}
            axes.plot(before[0] / before[1], y, "o", markersize=12, markerfacecolor="w", **ring)
        axes.text(1.06, y, _counts(before, after), va="center", fontsize=9, color=GRAY)
    axes.set(xlim=(-0.04, 1.04), ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), map(printable, rows))
    axes.set_xticks([0, 0.5, 1], ["none", "half", "all right"])
    axes.set_xlabel("ring: before · dot: after · band: where the share after may lie (95 %)")
    axes.tick_params(axis="y", length=0)
    return picture


def _counts(before: Count, after: Count) -> str:
    shown = ["–" if not n_asked else f"{right} of {n_asked}" for right, n_asked in (before, after)]
    return f"{shown[0]} → {shown[1]}"
