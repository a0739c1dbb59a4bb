"""Drawings of a machine's roofline, and of a scaling law's exponent."""

from collections.abc import Iterable, Mapping

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.lessons.lesson_15.roofline import Roofline

Point = tuple[float, float, str]
"""Operations per byte, operations per second, and a label."""
STYLES = (  # of series, in order: of its marks, and where their labels are
    ({"marker": "o", "color": COLORS[0]}, (8, -12, "left")),
    ({"marker": "o", "color": COLORS[2], "mfc": "none"}, (-8, 7, "right")),
    ({"marker": "s", "color": COLORS[6], "mfc": "none"}, (8, 4, "left")),
)


def under_the_roof(
    title: str,
    alt: str,
    machine: Roofline,
    series: Mapping[str, Iterable[Point]],
    pairs: Iterable[tuple[Point, Point]] = (),
) -> Figure:
    """Return a roofline with points.

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see it needs to know.
        machine: whose limits are drawn.
        series: points by their name in the legend: first dots, then rings, then squares.
        pairs: points that a line joins.
    """
    drawing, axes = figure(title, alt, 7.0, 3.8)
    edge, lowest = machine.operations / machine.bandwidth, machine.operations
    across = [0.25, edge, 128]
    axes.plot(across, [machine.at(x) / 1e9 for x in across], color=COLORS[1], zorder=1)
    words = {"color": COLORS[1], "fontsize": 9, "ha": "right"}
    axes.text(edge / 2.4, machine.at(edge / 2) / 1e9, "memory’s limit", **words)
    axes.text(128, 1.12 * machine.operations / 1e9, "the processor’s limit", **words)
    for one, other in pairs:
        axes.plot(one[0:1] + other[0:1], [one[1] / 1e9, other[1] / 1e9], color="#aaaaaa", zorder=1)
    for (name, points), (style, (right, up, side)) in zip(series.items(), STYLES, strict=False):
        x, y, labels = zip(*points, strict=True)
        lowest = min(lowest, *y)
        y = [one / 1e9 for one in y]
        axes.plot(x, y, ls="none", ms=8, mew=1.6, label=name, **style)
        for place, label in zip(zip(x, y, strict=True), labels, strict=True):
            axes.annotate(
                label, place, (right, up), textcoords="offset points", ha=side, fontsize=9
            )
    axes.set(xscale="log", yscale="log", xlim=(0.22, 140))
    axes.set(xlabel="operations per byte (log)", ylabel="billion operations a second (log)")
    axes.set(xticks=[0.5, 1, 2, 4, 8, 16, 32, 64], yticks=[1, 2, 5, 10, 20, 50, 100, 200, 500])
    axes.set_ylim(lowest / 2.2e9, 2 * machine.operations / 1e9)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    return drawing
