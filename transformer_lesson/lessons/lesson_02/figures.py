"""Drawings of positions: clock hands, and bits beside waves."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Wedge

from transformer_lesson.figures.plots import COLORS, DIVERGING, Figure, draw_matrix, figure
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


def bits_and_waves(bits, encoding) -> Figure:
    """Return positions as binary digits beside positions as sines and cosines.

    Args:
        bits: shape (position, digit), the fastest digit first.
        encoding: shape (position, dimension).
    """
    picture, panels = figure(
        "Digits and hands: fast ones on the left, slow ones on the right",
        "Two heatmaps with positions down. Left, binary digits: the first column changes at every "
        "step, each further one half as often. Right, sines and cosines: the first columns change "
        "from row to row, further ones more and more slowly, the last ones hardly at all.",
        width=9.0,
        height=4.0,
        columns=2,
    )
    draw_matrix(panels[0], bits, numbers=False, cmap=DIVERGING, vmin=-1.2, vmax=1.2)
    draw_matrix(panels[1], encoding, numbers=False, cmap=DIVERGING, vmin=-1.2, vmax=1.2)
    panels[0].set(xlabel="binary digit", ylabel="position", title="binary digits")
    panels[1].set(xlabel="dimension", ylabel="position", title="sines and cosines")
    for axes, (left, width) in zip(panels, ((0.06, 0.24), (0.37, 0.61)), strict=True):
        axes.spines[:].set_visible(False)
        axes.set_position((left, 0.13, width, 0.7))  # a column of 128 is still seen
    return picture
