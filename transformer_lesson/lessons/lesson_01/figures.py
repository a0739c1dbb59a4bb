"""Tokens as points in a plane."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable


def word_map(points, words: Sequence[str], groups: Sequence[str], title: str) -> Figure:
    """Return words at their places in a plane, moved apart only as far as legibility requires.

    Args:
        points: shape (word, 2).
        words: one for each point.
        groups: each word's group, which decides its color; group names are beside their words.
        title: the claim that the drawing supports.
    """
    points, members = as_array(points), _members(groups)
    details = [f"{name}: {', '.join(words[i] for i in ids)}" for name, ids in members.items()]
    alt = f"{len(words)} words as points, by group. {'; '.join(details)}."
    picture, axes = figure(title, alt, width=8.0, height=5.0)
    _without_scale(axes)
    axes.set_position((0.02, 0.02, 0.96, 0.88))
    (left, low), (right, high) = points.min(axis=0), points.max(axis=0)
    across, up = 0.14 * (right - left), 0.1 * (high - low)
    axes.set(xlim=(left - across, right + across), ylim=(low - up, high + up))
    places = _apart(axes, points, words)
    for color, (name, ids) in zip(COLORS, members.items(), strict=False):
        style = {"ha": "center", "va": "center", "color": color, "parse_math": False}
        x, y = places[ids, 0].mean(), places[ids, 1].mean()
        axes.text(x, y, printable(name), fontsize=44, alpha=0.18, **style)
        for i in ids:
            axes.text(*places[i], printable(words[i]), fontsize=9, **style)
    return picture


def _members(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of each group's members."""
    names = dict.fromkeys(groups)
    return {name: [i for i, group in enumerate(groups) if group == name] for name in names}


def _without_scale(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[])


def _apart(axes: Axes, points: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Return places near the points where no word covers another."""
    places = axes.transData.transform(points) / axes.figure.dpi  # in inches
    size = np.array([[0.08 * len(word) + 0.06, 0.15] for word in words])
    above = np.sign(places[:, None, 1] - places[None, :, 1])
    for _ in range(200):
        room = (size[:, None] + size[None]) / 2 - np.abs(places[:, None] - places[None])
        clash = (room > 0).all(axis=-1)
        places[:, 1] += 0.25 * (above * np.where(clash, room[..., 1], 0)).sum(axis=1)
    return axes.transData.inverted().transform(places * axes.figure.dpi)
