"""Drawings of texts cut into tokens, and of tokens as points in a plane."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure
from transformer_lesson.files import printable

PAPERS = (0.10, 0.24)  # alternating opacities of neighboring tokens
MARKERS = "os^DvP"
UNKNOWN = "<unk>"


def cuts(text: str, ways: Mapping[str, Sequence[str]], title: str) -> Figure:
    """Return a drawing of one text, cut several ways, one below the other.

    Args:
        text: what was cut.
        ways: by name, the tokens as `Tokenizer.tokens` writes them: "␣" for a space, and "<unk>"
            for an unknown word.
        title: the claim that the drawing supports.
    """
    details = [f"{name}: {len(pieces)} tokens, {' '.join(pieces)}" for name, pieces in ways.items()]
    alt, height = f"The text “{text}”, cut. {'; '.join(details)}.", 0.6 + 0.5 * len(ways)
    picture, axes = figure(title, alt, width=9.0, height=height)
    axes.set_axis_off()
    axes.set_position((0.02, 0.02, 0.96, 1 - 0.45 / height))
    axes.set(xlim=(-10, len(text) + 9), ylim=(len(ways) - 0.35, -0.65))
    for row, (name, tokens) in enumerate(ways.items()):
        axes.text(-0.7, row, printable(name), ha="right", va="center", fontsize=10)
        count = f"{len(tokens)} tokens"
        axes.text(len(text) + 0.7, row, count, ha="left", va="center", fontsize=10)
        for i, (start, end, token) in enumerate(_places(text, tokens)):
            color = COLORS[1] if token == UNKNOWN else COLORS[0]
            _piece(axes, start, end, row, token, color, PAPERS[i % 2])
    return picture


def _places(text: str, tokens: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return where each token begins and ends in the text."""
    places, end = [], 0
    for token in tokens:
        piece = r"\w+" if token == UNKNOWN else re.escape(token.replace("␣", " "))
        start, end = re.compile(piece).search(text, end).span()
        places.append((start, end, token))
    return places


def _piece(
    axes: Axes, start: int, end: int, row: int, token: str, color: str, paper: float
) -> None:
    shape = (start + 0.06, row - 0.36), end - start - 0.12, 0.72, "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch(*shape, facecolor=color, alpha=paper, edgecolor="none"))
    middle = (start + end) / 2
    axes.text(middle, row, printable(token), ha="center", va="center", fontsize=9, parse_math=False)


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


def group_maps(maps: Mapping[str, tuple], title: str) -> Figure:
    """Return several clouds of points side by side, colored and shaped by their groups.

    Args:
        maps: by name, the points, shape (point, 2), and the group of each.
        title: the claim that the drawing supports.
    """
    sizes = [f"{name}: {len(groups)} points" for name, (_, groups) in maps.items()]
    groups = list(_members([group for _, of in maps.values() for group in of]))
    alt = f"{title}. Points colored by {', '.join(groups)}. {'; '.join(sizes)}."
    picture, panels = figure(title, alt, width=9.0, height=3.0, columns=len(maps))
    for axes, (name, (points, of)) in zip(panels, maps.items(), strict=True):
        _without_scale(axes)
        axes.set_title(printable(name), fontsize=10, parse_math=False)
        for i, group in enumerate(groups):
            chosen = as_array(points)[[one == group for one in of]]
            style = {"marker": MARKERS[i], "color": COLORS[i], "s": 20, "label": group}
            axes.scatter(*chosen.T, **style)
    panels[0].legend(fontsize=9, frameon=False, loc="best")
    picture.subplots_adjust(left=0.02, right=0.98, bottom=0.03, wspace=0.08)
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
