"""One word in many sentences: how its vectors, alike at first, move apart from block to block."""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable

APART = 0.016  # distance at which coinciding vectors are drawn, relative to the width


def clouds(title: str, stages: Mapping, labels: Sequence[str]) -> Figure:
    """Return one word's vectors in two dimensions, stage by stage, colored by label, all on the
    scale of the last stage. Coinciding vectors are drawn around their place.

    Args:
        title: the claim that the figure supports.
        stages: by name, (vector, 2) numbers.
        labels: each vector's label, which decides its color.
    """
    kinds = list(dict.fromkeys(sorted(labels)))
    alt = (
        f"{len(stages)} clouds of {len(labels)} points, {', '.join(stages)}, colored by "
        f"{', '.join(map(printable, kinds))}: {title}."
    )
    picture, panels = figure(title, alt, width=9.0, height=3.4, columns=len(stages))
    last = as_array(list(stages.values())[-1])
    margin = 0.2 * np.ptp(last, axis=0)  # all panels show what the last one fills, and some more
    (left, bottom), (right, top) = last.min(0) - margin, last.max(0) + margin
    heights = {kind: np.median(last[[one == kind for one in labels], 1]) for kind in kinds}
    middle = np.mean([*heights.values()])
    for axes, (name, points) in zip(panels, stages.items(), strict=True):
        points = as_array(points)
        drawn = _side_by_side(points, APART * np.array([right - left, top - bottom]))
        colors = [COLORS[kinds.index(label)] for label in labels]
        axes.scatter(*drawn.T, s=9, color=colors, alpha=0.55, linewidths=0)
        for i, kind in enumerate(kinds):
            mine = points[[label == kind for label in labels]]
            if axes is panels[-1]:
                x, y = np.median(mine, axis=0)
                above, away = y > middle, 0.15 * margin[1]
                axes.text(
                    x, mine[:, 1].max() + away if above else mine[:, 1].min() - away,
                    printable(kind), color=COLORS[i], fontsize=12, weight="bold", ha="center",
                    va="bottom" if above else "top", parse_math=False,
                )  # fmt: skip
        if len(np.unique(points.round(3), axis=0)) < 0.8 * len(points):
            note = "equal vectors,\ndrawn side by side"
            axes.text(0.5, 0.16, note, transform=axes.transAxes, fontsize=9, ha="center", va="top")
        axes.set_title(printable(name), fontsize=10)
        axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))
        axes.spines[:].set_visible(False)
    picture.subplots_adjust(left=0.02, right=0.98, bottom=0.04, wspace=0.08)
    return picture


def _side_by_side(points: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return points of shape (point, 2), with coinciding ones on a spiral around their place."""
    _, places = np.unique(points.round(3), axis=0, return_inverse=True)
    moved = points.copy()
    for place in set(places.ravel()):
        here = np.flatnonzero(places.ravel() == place)
        turn = 2.4 * np.arange(len(here))  # the golden angle: evenly, like a sunflower's seeds
        circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        moved[here] += step * np.sqrt(np.arange(len(here)))[:, None] * circle
    return moved
