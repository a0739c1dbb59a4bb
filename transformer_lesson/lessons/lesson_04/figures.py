"""One picture: where heads look, beside what their absence costs.

Short because there is a single figure.
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.intervals import wilson

Shares = Mapping[str, tuple[int, int]]


def looks_and_needs(
    title: str,
    looks: tuple[str, Shares],
    needs: tuple[str, Mapping[str, Shares]],
    part: tuple[str, Mapping[str, Shares]],
) -> Figure:
    """Return two panels of shares: a row for each name, a dot, and its 95 % interval as a bar.

    The second panel's rows come in groups, each under its heading, and have another dot, below,
    for a part of what is counted.

    Args:
        title: the claim that the figure supports.
        looks: what the first panel's shares are, and by name, from top to bottom, (count, of).
        needs: the same for the second panel, by group.
        part: the same for its other dots, with the same groups and names.
    """
    told = [f"{looks[0]}: {_listed(looks[1])}"]
    for heading, groups in (needs, part):
        told += [f"{heading}, {group}: {_listed(shares)}" for group, shares in groups.items()]
    picture, panels = figure(title, f"{title}. {'; '.join(told)}.", 9.0, 3.9, columns=2)
    _panel(panels[0], looks[0], list(looks[1]))
    _dots(panels[0], 0, looks[1], COLORS[0])
    _panel(panels[1], needs[0], [row for name, group in needs[1].items() for row in (name, *group)])
    first = 0
    for group, shares in needs[1].items():
        panels[1].get_yticklabels()[first].set(fontweight="bold", fontsize=9)
        _dots(panels[1], first + 1, shares, COLORS[1])
        _dots(panels[1], first + 1, part[1][group], COLORS[2], lower=0.3)
        first += 1 + len(shares)
    for i, (name, groups) in enumerate((("all", needs[1]), part)):
        _, of = next(iter(next(iter(groups.values())).values()))
        look = {"color": COLORS[1 + i], "va": "center", "fontsize": 9}
        panels[1].text(0.03, 0.9 + 0.7 * i, f"{name} ({of})", **look)
    picture.subplots_adjust(left=0.08, right=0.97, bottom=0.14, top=0.83, wspace=0.95)
    return picture


def _listed(shares: Shares) -> str:
    return ", ".join(f"{name} {n / of:.2f}" for name, (n, of) in shares.items())


def _panel(axes: Axes, heading: str, names: Sequence[str]) -> None:
    """Set up a panel of shares with a row for each name, the first on top."""
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.5, -0.5), xlabel="share; bar: 95 % interval")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_title(heading, fontsize=10)
    axes.grid(axis="x", alpha=0.3)


def _dots(axes: Axes, first: int, shares: Shares, color: str, lower: float = 0) -> None:
    """Draw a dot and its interval for each share from this row on, a bit below it for a part."""
    for y, (n, of) in enumerate(shares.values(), first):
        axes.hlines(y + lower, *wilson(n, of), color=color, linewidth=3 if lower else 6, alpha=0.3)
        size = 4 if lower else 6
        axes.plot(n / of, y + lower, "o", color=color, markersize=size, clip_on=False)
