"""A drawing of the look-up: ids, the rows of the table that they pick, and what comes out.

Longer than one function, because a row is drawn twice: in the table and where it is copied to.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure

CELL = 1.1  # width of a number's cell; its height is 1
IDS, TABLE, RESULT = 0.0, 3.4, 8.6  # where the three parts begin


def rows_picked(title: str, ids: Sequence[int], table) -> Figure:
    """Return a figure with an arrow from each id to its row of a table, and from there to a copy.

    Args:
        title: the claim that the figure supports.
        ids: one for each token.
        table: shape (vocab_size, d_model).
    """
    rows = as_array(table)
    picked = ", ".join(f"{id_} picks ({', '.join(f'{x:.1f}' for x in rows[id_])})" for id_ in ids)
    picture, axes = figure(title, f"{title}. Ids from top to bottom: {picked}.", 7.4, 2.9)
    height, color = len(rows), dict(zip(dict.fromkeys(ids), COLORS, strict=False))
    low = (height - len(ids)) / 2  # both columns of ids are as long, and in the middle
    for k, id_ in enumerate(ids):
        y = low + k
        axes.add_patch(Rectangle((IDS, y), 0.8, 1, facecolor="none", edgecolor=color[id_]))
        _write(axes, IDS + 0.4, y, str(id_), color[id_])
        _numbers(axes, RESULT, y, rows[id_], color[id_])
        _arrow(axes, (IDS + 0.85, y), (TABLE - 0.5, id_), color[id_])
        _arrow(axes, (TABLE + CELL * rows.shape[1] + 0.1, id_), (RESULT - 0.1, y), color[id_])
    for id_, row in enumerate(rows):
        _write(axes, TABLE - 0.25, id_, str(id_), color.get(id_, "#8896a5"))
        _numbers(axes, TABLE, id_, row, color.get(id_, "#8896a5"))
    middle = CELL * rows.shape[1] / 2
    for x, name in ((IDS + 0.4, "ids"), (TABLE + middle, "table $E$"), (RESULT + middle, "$X$")):
        axes.text(x, -0.2, name, ha="center", va="bottom", fontsize=11)
    axes.set(xlim=(-0.2, RESULT + 2 * middle + 0.2), ylim=(height + 0.1, -0.9))
    axes.set_axis_off()
    picture.subplots_adjust(0.02, 0.02, 0.98, 0.88)
    return picture


def _numbers(axes: Axes, left: float, y: float, row, color: str) -> None:
    """Draw one row of a matrix, its cells the darker the larger the number."""
    for k, value in enumerate(row):
        place = (left + CELL * k, y)
        axes.add_patch(Rectangle(place, CELL, 1, facecolor=COLORS[0], alpha=0.6 * value))
        axes.add_patch(Rectangle(place, CELL, 1, facecolor="none", edgecolor="#ffffff"))
        _write(axes, left + CELL * (k + 0.5), y, f"{value:.1f}", "black")
    frame = Rectangle((left, y), CELL * len(row), 1, facecolor="none", edgecolor=color, linewidth=2)
    axes.add_patch(frame)


def _write(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    axes.text(x, y + 0.5, text, ha="center", va="center", fontsize=10, color=color)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    """Draw an arrow from the middle of one row to that of another."""
    (x, y), (u, v) = start, end
    axes.annotate("", (u, v + 0.5), (x, y + 0.5), arrowprops={"arrowstyle": "-|>", "color": color})
