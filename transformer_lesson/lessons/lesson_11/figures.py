"""Drawings of heads: where they look and what their weights say; and features as arrows."""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, DIVERGING, Figure, as_array, figure
from transformer_lesson.files import printable

STYLES = ("-", "--", "-.", ":")


def weight_by_query(
    title: str,
    heads: Mapping[str, Sequence[float]],
    needed: tuple[int, int],
    parts: Mapping[str, tuple[int, int]] | None = None,
) -> Figure:
    """Return a figure of each head's weight on the token before, query by query.

    Args:
        title: the claim that the figure supports.
        heads: by name, one weight for each query from 1 on.
        needed: the first and the last query whose note another head needs.
        parts: of the sequence, by name: the first and the last position of each.
    """
    alt_parts, picture, axes = [], *figure(title, "", 8.0, 2.8)
    first, last = needed
    for i, (name, weights) in enumerate(heads.items()):
        y, color = as_array(weights), COLORS[i]
        axes.plot(np.arange(1, len(y) + 1), y, STYLES[i] + "o", ms=3, color=color, label=name)
        before, inside = y[: first - 1].mean(), y[first - 1 : last].mean()
        alt_parts.append(
            f"{name}: queries 1 to {first - 1} {before:.2f}, "
            f"queries {first} to {last}, where notes are needed, {inside:.2f}"
        )
    axes.axvspan(first - 0.5, last + 0.5, color=COLORS[2], alpha=0.15, lw=0)
    middle = (first + last) / 2
    axes.text(middle, 0.97, "notes are\nneeded here", color=COLORS[2], ha="center", va="top")
    for name, (start, end) in (parts or {}).items():
        axes.plot((start - 0.4, end + 0.4), (1.1, 1.1), color="gray", lw=1.2)
        labeled = f"{printable(name)}\n{start} to {end}"
        axes.text((start + end) / 2, 1.15, labeled, color="gray", ha="center", fontsize=9)
        alt_parts.append(f"{name}: {start} to {end}")
    axes.set(xlabel="position", ylabel="weight on the token before", yticks=(0, 0.25, 0.5, 0.75, 1))
    axes.set_ylim(0, 1.5 if parts else 1.05)
    axes.legend(frameon=False, loc="lower left")
    picture.subplots_adjust(bottom=0.18)
    picture.alt = f"{printable('. '.join(alt_parts))}."
    return picture


def kernels(title: str, parts: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of a head's weight by distance, for several versions of its scores.

    Args:
        title: the claim that the figure supports.
        parts: by name, the weights at distance 0 (the token itself), 1, 2 and so on.
    """
    alt_parts = [
        f"{name}: " + ", ".join(f"distance {d} {w:.2f}" for d, w in enumerate(weights))
        for name, weights in parts.items()
    ]
    picture, panels = figure(title, f"{'. '.join(alt_parts)}.", 8.5, 2.8, columns=len(parts))
    picture.subplots_adjust(top=0.74, wspace=0.25)
    for i, (axes, (name, weights)) in enumerate(zip(panels, parts.items(), strict=True)):
        y = as_array(weights)
        largest = int(y.argmax())
        colors = [COLORS[0] if d == largest else "#9ecae1" for d in range(len(y))]
        axes.bar(range(len(y)), y, color=colors, width=0.7)
        for d, w in enumerate(y):
            axes.text(d, w + 0.02, f"{w:.2f}", ha="center", fontsize=8)
        axes.set(xlabel="tokens back", xticks=range(len(y)), ylim=(0, 1), yticks=[])
        axes.set_title(printable(name), fontsize=9.5)
        if i == 0:
            axes.set_ylabel("weight")
    return picture


def rises(
    title: str, panels: Mapping[str, Mapping[str, Sequence[Sequence[tuple[int, float]]]]]
) -> Figure:
    """Return a figure of scores during training: in each panel, one color per kind of line.

    Args:
        title: the claim that the figure supports.
        panels: by panel name and kind of line: one line per seed, a sequence of (step, value).
    """
    picture, all_axes = figure(title, "", 9.0, 3.2, columns=len(panels))
    picture.subplots_adjust(top=0.8, right=0.97, wspace=0.2)
    alt_parts = []
    for axes, (name, kinds) in zip(all_axes, panels.items(), strict=True):
        for i, (kind, lines) in enumerate(kinds.items()):
            for j, line in enumerate(lines):
                steps, values = zip(*line, strict=True)
                label = kind if j == 0 else None
                axes.plot(steps, values, STYLES[i], color=COLORS[i], lw=1.4, label=label)
            half = sorted(half_way(line) for line in lines)
            alt_parts.append(f"{name}, {kind}: half of its rise by step {half[0]} to {half[-1]}")
        axes.set_title(printable(name), fontsize=10)
        axes.set(xlabel="step", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    all_axes[0].set_ylabel("share")
    all_axes[-1].legend(frameon=False, fontsize=8.5, loc="lower right")
    picture.alt = f"{'. '.join(alt_parts)}."
    return picture


def half_way(line: Sequence[tuple[int, float]]) -> int:
    """Return the first step at which a rising line is halfway up."""
    steps, values = zip(*line, strict=True)
    middle = (values[0] + max(values)) / 2
    return next(step for step, value in zip(steps, values, strict=True) if value >= middle)


def token_tables(title: str, tables: Mapping) -> Figure:
    """Return a figure of square tables, token read against token, each on its own scale.

    Args:
        title: the claim that the figure supports.
        tables: by name, a square tensor or array with one row per token read.
    """
    picture, panels = figure(title, "", 9.0, 3.0, columns=len(tables))
    picture.subplots_adjust(top=0.72, bottom=0.24, left=0.07, right=0.98, wspace=0.25)
    alt_parts = []
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        table = as_array(table)
        most, n = np.abs(table).max(), len(table)
        axes.imshow(table, cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
        diagonal = np.diag(table).mean()
        other = (table.sum() - np.diag(table).sum()) / (n * n - n)
        axes.set_title(f"{printable(name)}\nown {diagonal:+.1f}, others {other:+.1f}", fontsize=9.5)
        axes.set(xlabel="logit of token", xticks=[0, n - 1], yticks=[0, n - 1])
        alt_parts.append(f"{name}: own token {diagonal:+.1f}, others {other:+.1f} on average")
    panels[0].set_ylabel("token it looks at")
    note = "purple raises the logit, orange lowers it; each table has its own scale"
    picture.text(0.5, 0.01, note, ha="center", fontsize=8.5)
    picture.alt = f"{printable('. '.join(alt_parts))}."
    return picture


def arrows(title: str, panels: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Return a figure of features as arrows in two dimensions, a panel per training setting.

    Args:
        title: the claim that the figure supports.
        panels: by name, one row (x, y) for each feature.
    """
    picture, all_axes = figure(title, "", 9.0, 2.9, columns=len(panels))
    picture.subplots_adjust(left=0.03, right=0.97, bottom=0.04, top=0.74, wspace=0.1)
    alt_parts = []
    for axes, (name, W) in zip(all_axes, panels.items(), strict=True):
        W = as_array(W)
        lengths = np.hypot(*W.T)
        for i, (x, y) in enumerate(W):
            color = COLORS[i % 7]
            axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": color})
            if lengths[i] > 0.5:
                axes.text(1.18 * x, 1.18 * y, str(i), color=color, ha="center", va="center")
        n_kept = int((lengths > 0.5).sum())
        axes.set_title(f"{printable(name)}\n{n_kept} of {len(W)} kept", fontsize=9.5)
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_visible(False)
        alt_parts.append(f"{name}: {n_kept} of {len(W)} features have an arrow longer than 0.5")
    picture.alt = f"{printable('. '.join(alt_parts))}."
    return picture
