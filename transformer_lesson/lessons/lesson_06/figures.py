"""One word in many sentences: how its vectors, alike at first, move apart from block to block."""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable


def clouds(
    title: str,
    stages: Mapping,
    labels: Sequence[str],
    corners: Mapping[str, tuple[float, float]],
) -> Figure:
    """Return a figure of a word's vectors in two dimensions, stage by stage, colored by label.

    Each label's corner is a ring; dotted lines divide the square, so that a vector's nearest
    corner is in sight. Coinciding vectors are drawn around their place.

    Args:
        title: the claim that the figure supports.
        stages: by name, (vector, 2) numbers.
        labels: each vector's label.
        corners: of the unit square, by label: where vectors with this label should be.
    """
    alt = (
        f"{len(stages)} clouds of {len(labels)} points, {', '.join(stages)}, colored by "
        f"{', '.join(map(printable, corners))}: {title}."
    )
    picture, panels = figure(title, alt, width=9.0, height=3.6, columns=len(stages))
    color = dict(zip(corners, COLORS, strict=False))
    every = np.concatenate([as_array(points) for points in stages.values()])
    lowest = np.minimum(every.min(axis=0) - 0.1, -0.75)  # no dot is cut off
    highest = np.maximum(every.max(axis=0) + 0.1, 1.75)
    for axes, (name, points) in zip(panels, stages.items(), strict=True):
        places = _side_by_side(as_array(points), 0.03)
        kinds = [color[label] for label in labels]
        axes.scatter(*places.T, s=9, color=kinds, alpha=0.55, linewidths=0)
        for label, (x, y) in corners.items():
            for edge, width in (("white", 4.5), (color[label], 2.5)):  # a rim, then the ring
                ring = {"markerfacecolor": "none", "markeredgewidth": width}
                axes.plot(x, y, "o", markersize=12, color=edge, zorder=3, **ring)
            place = {"ha": "center", "va": "center", "fontsize": 11, "weight": "bold"}
            out_x, out_y = (1.45 if number else -0.45 for number in (x, y))
            axes.text(out_x, out_y, printable(label), color=color[label], parse_math=False, **place)
        axes.plot([0.5, 0.5, np.nan, -0.6, 1.6], [-0.6, 1.6, np.nan, 0.5, 0.5], ":", color="gray")
        (left, right), (bottom, top) = zip(lowest, highest, strict=True)
        axes.set_title(printable(name), fontsize=10, x=(0.5 - left) / (right - left))
        axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))
        axes.spines[:].set(visible=True, color="0.85")  # whose a far dot is
    picture.subplots_adjust(left=0.02, right=0.98, bottom=0.04, wspace=0.08)
    return picture


def _side_by_side(points: np.ndarray, step: float) -> np.ndarray:
    """Return points of shape (point, 2), with coinciding ones on a spiral around their place."""
    _, places = np.unique(points.round(3), axis=0, return_inverse=True)
    moved = points.copy()
    for place in set(places.ravel()):
        here = np.flatnonzero(places.ravel() == place)
        turn = 2.4 * np.arange(len(here))  # the golden angle: evenly, like a sunflower's seeds
        circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        moved[here] += step * np.sqrt(np.arange(len(here)))[:, None] * circle
    return moved
