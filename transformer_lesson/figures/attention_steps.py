"""Attention step by step: maps of weights, the flow of all queries, heads side by side.

One color per role, as in the explorables: queries, keys, values; weights go from white to blue.
Long because each picture of lessons 03 and 04 is drawn separately.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from transformer_lesson.figures.plots import COLORS, Figure, as_array, draw_matrix, figure
from transformer_lesson.files import printable

KEY, QUERY, VALUE = COLORS[0], COLORS[1], COLORS[2]
WHITE_TO_BLUE, SIGNED = "Blues", "PuOr"
INK, FAINT = "#33404d", "#8a97a3"
WIDE, HIGH, GAP = 0.08, 0.15, 0.75
"""Inches per number in `data_flow`, and between two tensors."""
LETTER = 0.055
"""Inches that each letter of a slanted name extends below `weight_maps`."""
LEFT = 1.05
"""Inches for the row names beside `heads_side_by_side`."""


def weight_maps(
    title: str,
    maps: Mapping[str, object],
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    vmax: float = 1.0,
    axis_names: tuple[str, str] = ("query", "key"),
) -> Figure:
    """Return small maps side by side, a row for each query and a column for each key.

    Args:
        title: the claim that the figure supports.
        maps: by name, nonnegative numbers of shape (query, key); infinite ones stay blank.
        queries: the labels of the rows.
        keys: the labels of the columns; by default the queries'.
        vmax: the number drawn in the darkest blue.
        axis_names: what rows and columns are.
    """
    keys = queries if keys is None else keys
    details = [f"{name}: {_strong(as_array(table), queries, keys)}" for name, table in maps.items()]
    few = len(maps) * len(keys) <= 6
    cell, row = (0.7, 0.45) if few else (0.42 if len(maps) < 3 else 0.35, 0.3)
    longest = min(max(map(len, keys)), 20)
    width = 1.25 + len(maps) * (0.5 + cell * len(keys))
    picture, panels = figure(
        title,
        f"{title}. {'; '.join(details)}.",
        width=width,
        height=1.55 + row * len(queries) + LETTER * longest,
        columns=len(maps),
    )
    for i, (axes, name) in enumerate(zip(np.atleast_1d(panels), maps, strict=True)):
        rows = queries if i == 0 else None
        colors = {"cmap": WHITE_TO_BLUE, "vmin": 0, "vmax": vmax}
        draw_matrix(axes, maps[name], keys, rows, numbers=len(keys) < 10, **colors)
        axes.set_title(printable(name), fontsize=9)
        axes.set_xlabel(axis_names[1], fontsize=9, color=FAINT)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        if i:
            axes.set_yticks([])
        else:
            axes.set_ylabel(axis_names[0], fontsize=9, color=FAINT)
    height = picture.get_size_inches()[1]
    low, right = (0.52 + LETTER * longest) / height, 1 - 0.25 / width
    picture.subplots_adjust(1.0 / width, low, right, 1 - 0.72 / height, wspace=0.1)
    return picture


def _strong(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> str:
    strong = [
        f"{printable(queries[i])} to {printable(keys[j])} {weights[i, j]:.2f}"
        for i, j in zip(*np.nonzero(weights >= 0.4), strict=True)
    ]
    return ", ".join(strong) if strong else "no weight of 0.4 or more"


def data_flow(title: str, Q, K, V, names: Sequence[str], asking: int, mask=None) -> Figure:
    """Return a figure of attention's steps: its tensors to scale, and what is done between them.

    One query's row is framed throughout, and the key and value that get its largest weight.

    Args:
        title: the claim that the figure supports.
        Q: queries, shape (query, d_k).
        K: keys, shape (key, d_k).
        V: values, shape (key, d_v).
        names: the words, the same for queries and keys.
        asking: the query whose row is framed.
        mask: shape (query, key), `True` = may attend; `None` omits the step.
    """
    Q, K, V = as_array(Q), as_array(K), as_array(V)
    scores = Q @ K.T / math.sqrt(Q.shape[1])
    steps = [("scores", scores, SIGNED)]
    if mask is not None:
        scores = np.where(as_array(mask) > 0, scores, -np.inf)
        steps.append(("masked", scores, SIGNED))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    steps.append(("weights", weights, WHITE_TO_BLUE))
    masked = [] if mask is None else ["the mask blanks what may not be seen"]
    product = "Q times K transposed, divided by the root of d_k, gives the scores"
    named = [product, *masked, "softmax"]
    numbers = Q.shape[1] + V.shape[1] + len(steps) * len(K)  # side by side
    width = 0.95 + WIDE * numbers + GAP * (1 + len(steps))
    picture, ground = figure(
        title,
        f"{title}. From left to right: {'; '.join(named)} gives the weights; weights times V gives "
        f"the output. Q {Q.shape}, K {K.shape}, V {V.shape}, weights {weights.shape}. The row of "
        f"{names[asking]} is framed; its weights: {_strong(weights[asking:][:1], ['it'], names)}.",
        width=width,
        height=0.85 + 3 * (HIGH * len(K) + 0.42),
    )
    ground.set_position((0, 0, 1, 1))
    ground.set(xlim=(0, width), ylim=(0, picture.get_size_inches()[1]))
    ground.set_axis_off()
    _flow(ground, Q, K, V, steps, weights @ V, names, asking)
    return picture


def _flow(ground: Axes, Q, K, V, steps, output, names, asking) -> None:
    """Place the tensors from left to right, with an arrow and its step between each two."""
    step = HIGH * len(K) + 0.42
    tops = [0.15 + 2 * step, 0.15 + step, 0.15]  # Q, K, V from top to bottom
    first = 0.85
    right = first + WIDE * Q.shape[1]
    for (name, tensor, color), low in zip(
        (("Q", Q, QUERY), ("K", K, KEY), ("V", V, VALUE)), tops, strict=True
    ):
        _tensor(ground, first, low, name, tensor, SIGNED, color)
        _row_names(ground, first, low, names, asking if name == "Q" else None)
    best = int(steps[-1][1][asking].argmax())  # the key that gets most, and its value
    for low, tensor, row, color in zip(
        tops, (Q, K, V), (asking, best, best), (QUERY, KEY, VALUE), strict=True
    ):
        _frame(ground, first, low, tensor, row, color)
    middle = (tops[0] + tops[1]) / 2
    center = middle + HIGH * len(Q) / 2
    for low in tops[:2]:
        start = (right + 0.08, low + HIGH * len(K) / 2)
        _line(ground, start, (right + GAP - 0.1, center))
    ground.text(right + GAP + 0.1, middle - 0.1, "QKᵀ / √d_k", ha="right", va="top", fontsize=9)
    left = right + GAP
    labels = ["mask", "softmax"] if len(steps) == 3 else ["softmax"]
    for label, (name, tensor, cmap) in zip([*labels, "times V"], steps, strict=True):
        _tensor(ground, left, middle, name, tensor, cmap, INK)
        _frame(ground, left, middle, tensor, asking)
        left += WIDE * len(K)
        _line(ground, (left + 0.1, center), (left + GAP - 0.1, center))
        ground.text(left + GAP / 2, center + 0.08, label, ha="center", fontsize=9)
        left += GAP
    _scales(ground, right + GAP, middle - 0.62, steps)
    across = (left - GAP / 2, tops[2] + HIGH * len(K) / 2)
    ground.plot([right + 0.08, across[0]], [across[1]] * 2, color=FAINT, linewidth=1.2)
    _line(ground, across, (across[0], center - 0.04))
    _tensor(ground, left, middle, "output", output, SIGNED, VALUE)
    _frame(ground, left, middle, output, asking)


def _scales(ground: Axes, left, low, steps) -> None:
    """Draw what the colors of the scores and of the weights mean, under the tensors themselves."""
    for i, (name, tensor, cmap) in enumerate(steps):
        if name == "masked":
            continue
        most = np.abs(tensor).max()
        ends = (0, most) if cmap == WHITE_TO_BLUE else (-most, most)
        start = left + i * (WIDE * len(tensor) + GAP)
        size = (WIDE * len(tensor), 0.1)
        _block(ground, (start, low), size, np.linspace(*ends, 100)[None], "", FAINT, cmap)
        for x, end in zip((start, start + size[0]), ends, strict=True):
            ground.text(x, low - 0.1, f"{end:.1f}", fontsize=7, color=INK, ha="center", va="top")


def _row_names(ground: Axes, left, low, names, asking: int | None) -> None:
    """Write the words beside a tensor's rows, the asking one in the queries' color."""
    for row, name in enumerate(names):
        height = low + HIGH * (len(names) - row - 0.5)
        color = QUERY if row == asking else INK
        place = {"ha": "right", "va": "center_baseline", "fontsize": 8}
        ground.text(left - 0.05, height, printable(name), color=color, **place)


def _frame(ground: Axes, left, low, tensor, row: int, color: str = QUERY) -> None:
    """Frame one row of a tensor."""
    rows, columns = tensor.shape
    place = (left, low + HIGH * (rows - row - 1))
    look = {"fill": False, "edgecolor": color, "linewidth": 1.6, "zorder": 5}
    ground.add_patch(Rectangle(place, WIDE * columns, HIGH, **look))


def _tensor(ground: Axes, left, low, name, tensor, cmap, color) -> None:
    """Draw a tensor to scale, with its name and shape above."""
    rows, columns = tensor.shape
    size = (WIDE * columns, HIGH * rows)
    place = (left, low + size[1] / 2)
    _block(ground, place, size, tensor, f"{name}  ({rows}, {columns})", color, cmap)


def _line(axes: Axes, start, end) -> None:
    arrow = {"arrowstyle": "-|>", "color": FAINT, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.2}
    axes.annotate("", end, start, arrowprops=arrow)


def heads_side_by_side(
    title: str, x, weights, heads, output, words: Sequence[str], asking: int
) -> Figure:
    """Return a figure of multi-head attention: x, each head's weights and result, and their mix.

    Weights share one scale from 0 to 1, results another. One query's row is framed throughout, and
    under each head's weights is the word to which that query gives most.

    Args:
        title: the claim that the figure supports.
        x: what the heads read, shape (n, d_model).
        weights: shape (head, n, n).
        heads: the heads' results, shape (head, n, d_head).
        output: their concatenation times W_O, shape (n, d_model).
        words: the n rows of x.
        asking: the query whose row is framed.
    """
    x, weights, heads, output = (as_array(array) for array in (x, weights, heads, output))
    count, n, d_head = heads.shape
    concat = np.concatenate(list(heads), axis=1)
    looks = ", ".join(f"{words[j]} {weights[i, asking, j]:.2f}" for i, j in _tops(weights, asking))
    wide, step = 6.4, 6.4 / count  # inches
    picture, ground = figure(
        title,
        f"{title}. From top to bottom: x {x.shape}, read by {count} heads, each with weights "
        f"({n}, {n}) and a result ({n}, {d_head}); the results side by side {concat.shape}; "
        f"times W_O, the output {output.shape}. The row of "
        f"{words[asking]} is framed; by head, it looks most at: {looks}.",
        width=LEFT + wide + 0.15,
        height=5.6,
    )
    ground.set_position((0, 0, 1, 1))
    ground.set(xlim=(0, LEFT + wide + 0.15), ylim=(-0.2, 5.4))
    ground.set_axis_off()
    _block(ground, (LEFT, 4.3), (wide, 0.98), x, f"x  {x.shape}", INK)
    key = {"fontsize": 7, "color": INK, "ha": "right", "va": "bottom"}
    ground.text(LEFT + wide, 4.83, "purple: above 0, orange: below", **key)
    most = np.abs(concat).max()
    for i, j in _tops(weights, asking):
        _one_head(ground, LEFT + step * i, step, i, weights[i], heads[i], most, asking)
        look = {"fontsize": 8, "color": QUERY, "ha": "center", "va": "center", "parse_math": False}
        caption = f"{printable(words[j])} {weights[i, asking, j]:.2f}"
        ground.text(LEFT + step * (i + 0.5), 2.49, caption, **look)
    _block(ground, (LEFT, 1.13), (wide, 0.5), concat, "", VALUE)
    for i in range(1, count):
        ground.plot([LEFT + step * i] * 2, [0.88, 1.38], color="white", linewidth=2, zorder=4)
    _line(ground, (LEFT + wide / 2, 0.82), (LEFT + wide / 2, 0.48))
    ground.text(LEFT + wide / 2 + 0.1, 0.65, "times W_O", va="center", fontsize=9)
    _block(ground, (LEFT, 0.18), (wide, 0.5), output, "", INK)
    for middle, high in ((4.3, 0.98), (1.13, 0.5), (0.18, 0.5)):
        _framed_row(ground, (LEFT, middle), (wide, high), asking, n)
    shapes = {"weights": weights, "results": heads, "side by side": concat, "output": x}
    _beside(ground, words, asking, {name: array.shape for name, array in shapes.items()})
    return picture


def _beside(ground: Axes, words: Sequence[str], asking: int, shapes: Mapping[str, tuple]) -> None:
    """Write the words beside x's rows, and below them each tensor's name and shape."""
    look = {"ha": "right", "va": "center"}
    for row, word in enumerate(words):
        y = 4.3 + 0.98 * (0.5 - (row + 0.5) / len(words))
        color = QUERY if row == asking else "black"
        name = printable(word)
        ground.text(LEFT - 0.06, y, name, fontsize=8, parse_math=False, color=color, **look)
    for y, (name, shape) in zip((2.98, 1.93, 1.13, 0.18), shapes.items(), strict=True):
        color = VALUE if name in ("results", "side by side") else INK
        ground.text(LEFT - 0.1, y, f"{name}\n{shape}", fontsize=9, color=color, **look)
    ground.text(LEFT - 0.1, 2.68, "white 0, dark 1", fontsize=7, color=INK, **look)


def _one_head(ground, left, step, number: int, weights, result, most: float, asking: int) -> None:
    """Draw one head's column: it reads x, has its weights, and passes its result down."""
    side, middle = 0.82 * step, left + step / 2
    _line(ground, (middle, 3.78), (middle, 3.58))
    ground.text(middle, 3.56, f"head {number}", fontsize=9, ha="center", va="top")
    tensors = (
        (weights, 2.98, 0.78, INK, WHITE_TO_BLUE, 1.0),
        (result, 1.93, 0.6, VALUE, SIGNED, most),
    )
    for tensor, height, high, color, cmap, largest in tensors:
        place, size = (middle - side / 2, height), (side, high)
        _block(ground, place, size, tensor, "", color, cmap, largest)
        _framed_row(ground, place, size, asking, len(tensor))
    _line(ground, (middle, 2.4), (middle, 2.25))
    _line(ground, (middle, 1.62), (middle, 1.4))


def _tops(weights: np.ndarray, asking: int) -> list[tuple[int, int]]:
    """Return each head's number and the key that this query gives most weight."""
    return list(enumerate(weights[:, asking].argmax(axis=-1).tolist()))


def _framed_row(ground: Axes, left_middle, size, row: int, rows: int) -> None:
    """Frame one row of a tensor drawn by `_block` at this place, in this size."""
    (left, middle), (width, height) = left_middle, size
    low = middle + height * (0.5 - (row + 1) / rows)
    look = {"fill": False, "edgecolor": QUERY, "linewidth": 1.0, "zorder": 5}
    ground.add_patch(Rectangle((left, low), width, height / rows, **look))


def _block(ground, left_middle, size, tensor, name, color, cmap=SIGNED, most=None) -> None:
    """Draw a tensor in a frame of this size, centered at this height, with its name above.

    The strongest color is that of `most`, by default the tensor's largest number.
    """
    (left, middle), (width, height) = left_middle, size
    low, high = middle - height / 2, middle + height / 2
    finite = np.isfinite(tensor)
    most = most or np.abs(tensor[finite]).max(initial=0.0) or 1.0
    lowest = 0 if cmap == WHITE_TO_BLUE else -most
    area = (left, left + width, low, high)
    ground.imshow(
        np.where(finite, tensor, np.nan),
        cmap=cmap,
        vmin=lowest,
        vmax=most,
        extent=area,
        aspect="auto",
        zorder=2,
        interpolation="nearest",
    )
    corners = [(left, low), (left + width, low), (left + width, high), (left, high), (left, low)]
    ground.plot(*zip(*corners, strict=True), color=color, linewidth=0.8, zorder=3)
    ground.text(left, high + 0.06, name, color=color, fontsize=9)
