"""Tensors in, figures out. Every figure has a title that states its claim and a text alternative;
colors are safe for color-blind readers; nothing here keeps state."""

import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from transformer_lesson.files import printable
from transformer_lesson.ranking import is_largest

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colors, distinguishable with any color vision."""

SEQUENTIAL, DIVERGING = "Blues", "PuOr"
DPI = 180  # shown at half size, so sharp on every screen
LONGEST_LABEL, LONGEST_LINE, LONGEST_TITLE = 60, 200, 400  # most characters


class Figure(MatplotlibFigure):
    """A matplotlib figure that displays itself as a PNG with a text alternative.

    Its background is white, so it is also readable on a dark page. VS Code takes the text
    alternative from "text/plain"; the web site, and JupyterLab with the course's extension, take it
    from the metadata.
    """

    def __init__(self, title: str, alt: str, width: float, height: float):
        super().__init__(figsize=(width, height), dpi=DPI, layout=None)
        self.alt = printable(alt, keep="\n")
        title = printable(title, LONGEST_TITLE, keep="\n")
        lines = textwrap.fill(title, int(12 * width))  # 12 letters of this size per inch
        self.suptitle(lines, fontsize=11, parse_math=False)

    def png(self) -> bytes:
        """Return the picture as the bytes of a PNG file."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a box is drawn instead
            self.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
        return buffer.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None):
        width, height = (round(inches * DPI / 2) for inches in self.get_size_inches())
        shown = {"width": width, "height": height, "alt": self.alt}
        return {"image/png": self.png(), "text/plain": self.alt}, {"image/png": shown}


def as_array(values) -> np.ndarray:
    """Return a tensor of any dtype, an array or a list as an array of floats."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    return np.asarray(values, dtype=float)


def figure(
    title: str, alt: str, width: float = 6.0, height: float = 3.0, columns: int = 1
) -> tuple[Figure, Axes | np.ndarray]:
    """Return an empty figure and its axes (an array if there are several columns).

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see the figure needs to know.
        width, height: in inches.
        columns: how many axes side by side.
    """
    picture = Figure(title, alt, width, height)
    axes = picture.subplots(1, columns)
    for panel in np.atleast_1d(axes):
        panel.spines[["top", "right"]].set_visible(False)
        for text in (panel.title, panel.xaxis.label, panel.yaxis.label):
            text.set_parse_math(False)
    left, bottom, top = 0.8 / width, 0.55 / height, 1 - 0.55 / height
    picture.subplots_adjust(left, bottom, 1 - 0.25 / width, top, wspace=0.35)
    return picture, axes


def label_ticks(axes: Axes, x_labels: Sequence[str] | None, y_labels: Sequence[str] | None) -> None:
    """Write one label per column and row; text is literal, never mathematics."""
    if x_labels is not None:
        axes.set_xticks(range(len(x_labels)), _shown(x_labels), rotation=45, ha="right", fontsize=8)
    if y_labels is not None:
        axes.set_yticks(range(len(y_labels)), _shown(y_labels), fontsize=8)
    for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
        label.set_parse_math(False)


def _shown(labels: Sequence[str]) -> list[str]:
    return [printable(label, LONGEST_LABEL) for label in labels]


def draw_matrix(
    axes: Axes,
    matrix,
    x_labels=None,
    y_labels=None,
    numbers: bool | None = None,
    decimals: int = 2,
    **image_options,
):
    """Draw a matrix as colored cells into axes; small matrices also get their numbers.

    Args:
        axes: where to draw.
        matrix: two-dimensional tensor or array; of truth values, the true ones get a tick.
        x_labels, y_labels: one text per column and per row.
        numbers: write the values; by default if there are at most 64 cells.
        decimals: of the written values.
        image_options: passed to `Axes.imshow` (vmin, vmax, cmap).

    Returns:
        The image, for a color bar.

    Raises:
        ValueError: matrix is not two-dimensional or is empty, or labels do not fit it.
    """
    values = as_array(matrix)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"matrix has shape {values.shape}, but it must have rows and columns: pick one "
            "sentence and one head, matrix[0, 0]."
        )
    for name, labels, count in (("x", x_labels, values.shape[1]), ("y", y_labels, len(values))):
        if labels is not None and len(labels) != count:
            raise ValueError(f"{name}_labels has {len(labels)} texts, but there are {count} cells.")
    image = axes.imshow(values, aspect="auto", **({"cmap": SEQUENTIAL} | image_options))
    label_ticks(axes, x_labels, y_labels)
    if numbers or (numbers is None and values.size <= 64):
        ticks = "bool" in str(getattr(matrix, "dtype", ""))
        for (row, column), value in np.ndenumerate(values):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            color = "white" if dark else "black"
            axes.text(
                column,
                row,
                ("✓" if value else "") if ticks else f"{value:.{decimals}f}",
                ha="center",
                va="center",
                fontsize=7,
                color=color,
            )
    return image


def heatmap(
    matrix,
    title: str,
    alt: str,
    x_labels: Sequence[str] | None = None,
    y_labels: Sequence[str] | None = None,
    x_name: str = "",
    y_name: str = "",
    bar_name: str = "",
    width: float = 6.0,
    height: float = 3.2,
    **image_options,
) -> Figure:
    """Return a figure of one matrix as colored cells with a color bar.

    Args:
        matrix: two-dimensional tensor or array.
        title: the claim that the figure supports.
        alt: the text alternative.
        x_labels, y_labels: one text per column and per row.
        x_name, y_name, bar_name: names of the axes and of the color bar.
        width, height: in inches.
        image_options: vmin, vmax, cmap, numbers, decimals.
    """
    picture, axes = figure(title, alt, width, height)
    image = draw_matrix(axes, matrix, x_labels, y_labels, **image_options)
    beyond = "max" if as_array(matrix).max() > image.norm.vmax else "neither"
    picture.colorbar(image, ax=axes, label=bar_name, extend=beyond)
    axes.set(xlabel=printable(x_name, LONGEST_LINE), ylabel=printable(y_name, LONGEST_LINE))
    longest = max((len(label) for label in _shown(x_labels or [""])), default=0)
    if longest > 2:
        picture.subplots_adjust(bottom=min(0.5, (0.6 + 0.05 * longest) / height))
    longest = max((len(label) for label in _shown(y_labels or [""])), default=0)
    if longest > 6:
        picture.subplots_adjust(left=min(0.4, (0.5 + 0.075 * longest) / width))
    return picture


def attention_map(
    weights,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    title: str,
    alt: str | None = None,
) -> Figure:
    """Return a figure of one head's weights: a row per query, a column per key.

    Args:
        weights: shape (query, key).
        query_tokens, key_tokens: the labels of the rows and columns.
        title: the claim that the figure supports.
        alt: the text alternative; by default it names each query's strongest key.

    Raises:
        ValueError: weights are not one row per query and one column per key.
    """
    weights = as_array(weights)
    if weights.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"weights have shape {weights.shape}, but there are {len(query_tokens)} query "
            f"and {len(key_tokens)} key tokens: pick one sentence and one head, weights[0, 0]."
        )
    if alt is None:
        best = [_strongest(row, key_tokens) for row in weights]
        pairs = zip(_shown(query_tokens), _shown(best), strict=True)
        pairs = ", ".join(f"{query} to {key}" for query, key in pairs)
        alt = f"{title}. Strongest key of each query: {pairs}."
    side = {"width": 2.4 + 0.5 * len(key_tokens), "height": 1.6 + 0.32 * len(query_tokens)}
    return heatmap(
        weights, title, alt, key_tokens, query_tokens, "key", "query", vmin=0, vmax=1, **side
    )


def _strongest(row: np.ndarray, key_tokens: Sequence[str]) -> str:
    largest = is_largest(torch.as_tensor(row))
    return "several alike" if largest.sum() > 1 else key_tokens[int(largest.int().argmax())]


def curves(
    values: Mapping,
    title: str,
    alt: str,
    x_name: str,
    y_name: str,
    x=None,
    **axes_options,
) -> Figure:
    """Return a figure with one named curve per entry; line styles differ as well as colors.

    Args:
        values: each curve's values by name, a tensor, array or list.
        title: the claim that the figure supports.
        alt: the text alternative.
        x_name, y_name: names of the axes.
        x: shared x values; 0, 1, 2, ... by default.
        axes_options: passed to `Axes.set` (xscale, yscale, ylim).

    Raises:
        ValueError: a curve and x differ in length.
    """
    labels = [textwrap.fill(printable(name, LONGEST_LABEL), WIDEST_NAME) for name in values]
    letters = max((len(line) for label in labels for line in label.split("\n")), default=0)
    room = 0.2 + 0.085 * letters if len(values) > 1 else 0.25  # inches
    picture, axes = figure(title, alt, width=5.75 + room)
    picture.subplots_adjust(right=1 - room / (5.75 + room))
    for i, (name, numbers) in enumerate(values.items()):
        y = as_array(numbers)
        if x is not None and len(x) != len(y):
            raise ValueError(f"curve {name!r} has {len(y)} values, but there are {len(x)} of x.")
        style = ("-", "--", "-.", ":")[i % 4]
        axes.plot(range(len(y)) if x is None else x, y, style, color=COLORS[i % 7], label=labels[i])
    axes.set(xlabel=printable(x_name, LONGEST_LINE), ylabel=printable(y_name, LONGEST_LINE))
    axes.set(**axes_options)
    axes.grid(alpha=0.3)
    if len(values) > 1:
        name_lines(axes)
    return picture


WIDEST_NAME, LEAST_GAP = 26, 0.075  # letters of a line; a share of the axes' height


def name_lines(axes: Axes) -> None:
    """Write each line's label at its end, moved apart vertically."""
    axes.get_ylim()  # computes the limits for the transformations below
    heights = []
    for line in axes.get_lines():
        finite = np.isfinite(line.get_ydata())
        last = line.get_xdata()[finite][-1:], line.get_ydata()[finite][-1:]
        at = (axes.transData - axes.transAxes).transform(np.column_stack(last))[:, 1]
        heights.append(float(np.clip(at.max(initial=0.0), 0, 1)))
    lowest = 0.0
    for height, line in sorted(zip(heights, axes.get_lines(), strict=True), key=lambda p: p[0]):
        name, height = line.get_label(), max(height, lowest)
        lowest = height + LEAST_GAP * (1 + name.count("\n"))
        place = {"transform": axes.transAxes, "va": "center", "fontsize": 9, "parse_math": False}
        axes.text(1.02, height, name, color=line.get_color(), **place)
