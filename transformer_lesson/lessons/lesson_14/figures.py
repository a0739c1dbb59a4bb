"""Small figures of lesson 14: a probe's measurement of the sick and the healthy program."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure, name_lines
from transformer_lesson.files import printable

SICK, HEALTHY = {"color": COLORS[1], "label": "sick"}, {"color": COLORS[0], "label": "healthy"}


def beside(
    sick,
    healthy,
    title: str,
    alt: str,
    x_name: str,
    y_name: str,
    names: Sequence[str] | None = None,
    **axes_options,
) -> Figure:
    """Return a small figure of two rows of numbers: two curves, or two bars for each name.

    The sick program's curve is dashed and its bars are hatched, so no reader needs the colors.

    Args:
        sick, healthy: what was measured, one number for each step or each name (tensors or lists).
        title: the claim that the figure supports.
        alt: what a reader who cannot see the figure needs to know.
        x_name, y_name: names of the axes.
        names: of the things measured; without them the numbers are steps of a curve.
        axes_options: given to `Axes.set` (yscale, ylim).

    Raises:
        ValueError: the numbers and names differ in length.
    """
    rows = as_array(healthy), as_array(sick)
    if names is not None and not len(rows[0]) == len(rows[1]) == len(names):
        raise ValueError(
            f"There are {len(rows[1])} numbers of the sick program, {len(rows[0])} of the healthy "
            f"one and {len(names)} names: give one number of each for each name."
        )
    picture, axes = figure(title, alt, 7.0, 2.5)
    picture.subplots_adjust(right=0.88)
    axes.set(xlabel=printable(x_name), ylabel=printable(y_name), **axes_options)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    if names is None:
        for y, style, dashes in zip(rows, (HEALTHY, SICK), ("-", "--"), strict=True):
            axes.plot(range(len(y)), y, dashes, **style)
        axes.locator_params(axis="x", integer=True)
        name_lines(axes)
        return picture
    axes.set_xticks(range(len(names)), [printable(name) for name in names], fontsize=9)
    _bars(axes, rows[0], HEALTHY, -0.2)
    _bars(axes, rows[1], SICK | {"hatch": "////"}, 0.2)
    return picture


def _bars(axes: Axes, heights, style: dict, side: float) -> None:
    """Draw one program's labeled bars, with a 0 in place of empty ones."""
    axes.bar([i + side for i in range(len(heights))], heights, 0.36, edgecolor="white", **style)
    foot = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
    for i, height in enumerate(heights):
        if height == 0:
            axes.text(i + side, 0.01, "0", fontsize=9, color=style["color"], **foot)
    axes.text(1.02, 0.8 - side, style["label"], transform=axes.transAxes, va="center",
              fontsize=9, color=style["color"])  # fmt: skip
