"""Drawings of units that add up, and of norms: what shares a mean, how large vectors grow
without one, where it may go."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable

INK = "#566372"
PLACES = {  # of the norm: on the branch below the sub-layer or above it, or on the stream
    "before the sub-layer": ("branch", 0.28),
    "between sub-layer and sum": ("branch", 0.72),
    "after the sum": ("stream", 1.06),
}


COUNTS = ("no s", "one s", "two s")


def units_added(
    W_1: Float[Tensor, "2 2"],
    b_1: Float[Tensor, "2"],
    W_2: Float[Tensor, "2 1"],
    b_2: Float[Tensor, "1"],
) -> Figure:
    """Return a figure of what two units add to a score, and its sum with b_2, over the s's.

    Args:
        W_1, b_1, W_2, b_2: of a feed-forward network that reads two numbers, an s on the noun and
            one on the verb, and gives a score.
    """
    W_1, b_1, W_2, b_2 = (as_array(parameter) for parameter in (W_1, b_1, W_2, b_2))
    count = np.linspace(0, 2, 81)
    endings = np.stack([count.clip(max=1), (count - 1).clip(min=0)], axis=1)  # the noun's s first
    added = (endings @ W_1 + b_1).clip(min=0) * W_2[:, 0]  # (count, unit)
    score = added.sum(axis=1) + b_2[0]
    above = [name for name, at in zip(COUNTS, score[::40], strict=True) if at > 0]
    scores = ", ".join(f"{name} {at:.1f}" for name, at in zip(COUNTS, score[::40], strict=True))
    picture, axes = figure(
        f"Above 0: {' and '.join(above) or 'nothing yet'}",
        f"Over the number of s's, what unit 0 adds, what unit 1 adds, and the score: {scores}.",
        width=6.2,
        height=2.8,
    )
    axes.axhline(0, color=INK, linewidth=1)
    lines = {"unit 0": added[:, 0], "unit 1": added[:, 1], "score": score}
    for i, (name, line) in enumerate(lines.items()):
        look = {"color": "black", "linewidth": 2.5} if name == "score" else {"color": COLORS[i]}
        axes.plot(count, line, "-" if name == "score" else "--", **look)
        axes.annotate(name, (2, line[-1]), (9, -4), textcoords="offset points", color=look["color"])
    axes.plot([0, 1, 2], score[::40], "o", color="black", markersize=7)
    axes.set_xticks([0, 1, 2], COUNTS)
    axes.set(ylabel="added to the score")
    picture.subplots_adjust(right=0.87)
    return picture


def shared_means(words: Sequence[str]) -> Figure:
    """Return three grids of words by eight features, showing which cells share a norm's mean.

    Args:
        words: of two sentences of equal length.
    """
    row, column, sentence = np.zeros((3, len(words), 8))
    row[1], column[:, 2], sentence[: len(words) // 2] = 1, 1, 1
    picture, panels = figure(
        "Three norms of the same numbers: over one word, over a sentence, over one feature",
        "Three copies of a grid of words by features. Layer norm in a Transformer takes one mean "
        "over a row, a word. Layer norm of images takes it over all cells of one sample, here a "
        "sentence. Batch norm takes it over a column, one feature of all words of all sentences.",
        width=9.0,
        height=3.2,
        columns=3,
    )
    names = ("layer norm in a Transformer", "layer norm of images", "batch norm")
    for axes, cells, name in zip(panels, (row, sentence, column), names, strict=True):
        axes.pcolormesh(cells, cmap="Blues", vmin=0, vmax=1.6, edgecolors="#c9d1d9", linewidth=0.5)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("feature")
        axes.set_xticks([])
        axes.invert_yaxis()
        axes.set_yticks([])
        axes.axhline(len(words) / 2, color=INK, linewidth=1.5)
        axes.spines[:].set_visible(False)
    panels[0].set_yticks(np.arange(len(words)) + 0.5, map(printable, words), fontsize=9)
    panels[0].tick_params(length=0)
    picture.subplots_adjust(left=0.1, right=0.99, wspace=0.12)
    return picture


def norm_places() -> Figure:
    """Return a figure of a block's sum, three times, with the norm in each of its three places."""
    picture, panels = figure(
        "Three places for the norm N",
        "Three drawings of a residual connection. The stream runs upward; a branch leaves it, "
        f"passes the sub-layer and is added to it. The norm stands {', '.join(PLACES)}.",
        width=8.0,
        height=2.9,
        columns=3,
    )
    for axes, (name, (line, height)) in zip(panels, PLACES.items(), strict=True):
        _sum(axes)
        place = 0.3 if line == "stream" else 0.75, height
        _box(axes, place, "N", COLORS[1], "none", color="white", fontweight="bold")
        axes.set(xlim=(0, 1.2), ylim=(-0.12, 1.35))
        axes.set_title(name, fontsize=10)
        axes.set_axis_off()
    picture.subplots_adjust(left=0.02, right=0.98, bottom=0.03, top=0.8, wspace=0.1)
    return picture


def _sum(axes: Axes) -> None:
    """Draw the stream, and a branch that passes the sub-layer and is added."""
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0.3, 1.33), (0.3, -0.1), arrowprops=arrow)
    axes.plot([0.3, 0.75, 0.75], [0.06, 0.06, 0.88], color=INK, linewidth=1.5)
    axes.annotate("", (0.36, 0.88), (0.75, 0.88), arrowprops=arrow)
    _box(axes, (0.75, 0.5), "sub-layer", "white", INK)
    _box(axes, (0.3, 0.88), "+", "white", INK, "circle,pad=0.15", fontsize=11)


def _box(axes, place, text, fill, edge, shape="round,pad=0.3", **look) -> None:
    """Write a text in a box centered here."""
    box = {"boxstyle": shape, "facecolor": fill, "edgecolor": edge}
    axes.text(*place, text, ha="center", va="center", bbox=box, **look)


def sizes(title: str, runs: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
    """Return a figure of the residual stream's size at its stations, downwards, a line per model.

    Args:
        title: the claim that the figure supports.
        runs: by name, the standard deviation of the stream at each station.
        names: the stations' hook points; a new line begins at each embedding.
    """
    begins = [i for i, name in enumerate(names) if "embedding" in name] or [0]
    parts = list(zip(begins, [*begins[1:], len(names)], strict=True))
    shown = [_station(name) for name in names]
    deviations = "; ".join(
        f"{name}: {', '.join(f'{s:.1f}' for s in run)}" for name, run in runs.items()
    )
    picture, axes = figure(
        title,
        f"Standard deviation of the stream at {', '.join(shown)}. {deviations}.",
        width=8.0,
        height=4.2,
    )
    for i, (name, run) in enumerate(runs.items()):
        for begin, end in parts:
            axes.plot(run[begin:end], range(begin, end), "o-", color=COLORS[i], markersize=4)
        axes.annotate(
            f"{printable(name)}: {run[-1]:.1f}", (run[-1], len(run) - 1), (9, -4),
            textcoords="offset points", color=COLORS[i], parse_math=False,
        )  # fmt: skip
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < 1.5 * max(map(max, runs.values()))]
    axes.set_yticks(range(len(shown)), shown, fontsize=9)
    axes.set(
        xlabel="standard deviation (logarithmic)", xscale="log", xticks=ticks, xticklabels=ticks
    )
    axes.minorticks_off()
    axes.invert_yaxis()
    picture.subplots_adjust(left=0.26, right=0.82)
    return picture


def _station(name: str) -> str:
    """Return a hook point's name, such as `decoder.1.after_cross_attention`, in words."""
    part, *block, point = name.split(".")
    if not block:
        return part.replace("_", " ")
    done = {"output": "feed-forward"}.get(point, point.removeprefix("after_").replace("_", "-"))
    return f"{part} {block[0]}, {done}"
