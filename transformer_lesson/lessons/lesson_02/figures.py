"""Drawings of positions: clock hands, and what models read that count from elsewhere."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Wedge

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.files import printable


def clock_hands(
    positions: Sequence[int], words: Sequence[str], hands: Mapping[int, float], title: str
) -> Figure:
    """Return a row of clocks for each hand, showing it at each position.

    A hand points up at position 0 and turns to the right; its tip is (sine, cosine).

    Args:
        positions: where to read the clocks.
        words: the label of each column, such as the token at that position.
        hands: radians per position by the number of the hand, one for each row.
        title: the claim that the drawing supports.
    """
    turns = ", ".join(f"{2 * math.pi / frequency:,.1f}" for frequency in hands.values())
    alt = (
        f"Clocks. Columns: positions {', '.join(map(str, positions))}. Rows: hands that turn once "
        f"in {turns} positions. All point up at position 0; the slower, the less they move."
    )
    picture, axes = figure(title, alt, width=9.0, height=1.2 + 0.85 * len(hands))
    axes.set(xlim=(-2.2, len(positions) - 0.4), ylim=(len(hands) - 0.4, -1.05))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_position((0.01, 0.01, 0.98, 0.9))
    for x, (position, word) in enumerate(zip(positions, words, strict=True)):
        above = f"{printable(word)}\n{position:,}"
        axes.text(x, -0.55, above, ha="center", va="bottom", fontsize=10, parse_math=False)
        for y, frequency in enumerate(hands.values()):
            _clock(axes, x, y, position * frequency, COLORS[y % 4])
    for y, (number, frequency) in enumerate(hands.items()):
        details = f"hand {number}: one turn\nin {2 * math.pi / frequency:,.0f} positions"
        axes.text(-0.6, y, details, ha="right", va="center", fontsize=9, color=COLORS[y % 4])
    return picture


def _clock(axes: Axes, x: int, y: int, angle: float, color: str) -> None:
    """Draw a clock whose hand has turned by an angle; the y axis points down."""
    turned = math.degrees(angle)
    if turned % 360:
        start, end = (-90, -90 + turned) if turned < 360 else (0, 360)
        axes.add_patch(Wedge((x, y), 0.4, start, end, facecolor=color, alpha=0.12))
    axes.add_patch(Circle((x, y), 0.4, facecolor="none", edgecolor="#8896a5", linewidth=0.8))
    tip = x + 0.4 * math.sin(angle), y - 0.4 * math.cos(angle)
    axes.plot([x, tip[0]], [y, tip[1]], color=color, linewidth=1.8, solid_capstyle="round")
    axes.plot(*tip, "o", color=color, markersize=3.5)


def turns(title: str, pairs: Sequence[tuple[int, int]], hands: Mapping[int, float]) -> Figure:
    """Return a row of clocks for each pair of positions: how each hand turns from one to the other.

    A gray hand is where it starts, a colored one where it ends; the way between is filled.

    Args:
        title: the claim that the drawing supports.
        pairs: a first and a later position, one pair for each row.
        hands: radians per position by the number of the hand, one for each column.
    """
    listed = ", ".join(f"{first} to {last}" for first, last in pairs)
    alt = (
        f"Clocks. Rows: positions {listed}. Columns: hands. Each hand turns equally far in each "
        "row."
    )
    picture, axes = figure(title, alt, width=6.0, height=1.0 + 0.95 * len(pairs))
    axes.set(xlim=(-1.6, len(hands) - 0.4), ylim=(len(pairs) - 0.5, -0.8))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_position((0.01, 0.01, 0.98, 0.86))
    for x, ((number, frequency), color) in enumerate(zip(hands.items(), COLORS, strict=False)):
        axes.text(x, -0.5, f"hand {number}", ha="center", va="bottom", fontsize=9, color=color)
        for y, (first, last) in enumerate(pairs):
            ends = [-90 + math.degrees(at * frequency) for at in (first, last)]  # y points down
            axes.add_patch(Wedge((x, y), 0.4, *ends, facecolor=color, alpha=0.2))
            axes.add_patch(
                Circle((x, y), 0.4, facecolor="none", edgecolor="#8896a5", linewidth=0.8)
            )
            for end, shade in zip(ends, ("#8896a5", color), strict=True):
                turned = math.radians(end)
                tip = x + 0.4 * math.cos(turned), y + 0.4 * math.sin(turned)
                axes.plot([x, tip[0]], [y, tip[1]], "o-", color=shade, markersize=3, markevery=[1])
    for y, (first, last) in enumerate(pairs):
        axes.text(-0.6, y, f"from {first} to {last}", ha="right", va="center", fontsize=10)
    return picture


def by_first_position(
    title: str,
    alt: str,
    curves: Mapping[str, Sequence[float]],
    firsts: Sequence[int],
    others: Mapping[str, Sequence[Sequence[float]]],
    trained: Mapping[str, tuple[int, int]],
) -> Figure:
    """Return a panel for each model: accuracy by the position of the first word.

    A thick line is one training, dots are others; where the model was trained the ground is shaded.
    A dashed line is guessing, one half.

    Args:
        title: the claim that the figure supports.
        alt: the text alternative.
        curves: accuracies at the positions 0, 1, 2, …, by model.
        firsts: the positions of the dots.
        others: accuracies there of each further training, by model.
        trained: the first and last position in training, by model.
    """
    picture, panels = figure(title, alt, width=9.0, height=3.5, columns=len(curves))
    gray = "#566372"
    for axes, (name, curve), color in zip(panels, curves.items(), COLORS, strict=False):
        start, end = trained[name]
        axes.axvspan(start - 1, end + 1, color=color, alpha=0.12, linewidth=0)
        axes.text(max(start - 1, 0) + 2, 0.05, "trained here", color=color, fontsize=9)
        axes.axhline(0.5, color=gray, linestyle="--", linewidth=1)
        axes.plot(range(len(curve)), curve, color=color, linewidth=2)
        for values in others[name]:
            axes.plot(firsts, values, "o", color=color, markersize=4, alpha=0.5, mew=0)
        axes.set(ylim=(0, 1.02), xlabel="position of the first word")
        axes.set_title(name, fontsize=10)
    panels[0].set_ylabel("share right")
    note = "line: one run; dots: two more; 95 % intervals: ± 0.07 at most"
    picture.text(0.98, 0.02, note, color=gray, fontsize=9, ha="right")
    panels[-1].text(80, 0.44, "guessing", color=gray, fontsize=9, ha="right")
    picture.subplots_adjust(0.08, 0.21, 0.98, 0.82, wspace=0.15)
    return picture
