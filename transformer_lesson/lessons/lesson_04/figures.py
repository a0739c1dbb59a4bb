"""One picture: where heads look, beside what their absence costs.

Short because there is a single figure.
"""

from collections.abc import Mapping

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.intervals import wilson

Shares = Mapping[str, tuple[int, int]]


def looks_and_needs(
    title: str, looks: tuple[str, Shares], needs: tuple[str, Shares], part: tuple[str, Shares]
) -> Figure:
    """Return two panels of shares: a row for each name, a dot, and its 95 % interval as a bar.

    The second panel has another dot, below, for a part of what is counted.

    Args:
        title: the claim that the figure supports.
        looks, needs: what a panel's shares are, and by name, from top to bottom, (count, of).
        part: the same for the other dots of the second panel, with its names.
    """
    told = [
        f"{heading}: " + ", ".join(f"{name} {n / of:.2f}" for name, (n, of) in shares.items())
        for heading, shares in (looks, needs, part)
    ]
    picture, panels = figure(title, f"{title}. {'; '.join(told)}.", 9.0, 3.6, columns=2)
    for axes, color, (heading, shares) in zip(panels, COLORS, (looks, needs), strict=False):
        _dots(axes, shares, color)
        axes.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5), xlabel="share; bar: 95 % interval")
        axes.set_yticks(range(len(shares)), shares)
        axes.set_title(heading, fontsize=10)
        axes.grid(axis="x", alpha=0.3)
    _dots(panels[1], part[1], COLORS[2], lower=0.3)
    n = next(iter(needs[1].values()))[1], next(iter(part[1].values()))[1]
    for i, (name, of) in enumerate(zip(("all", part[0]), n, strict=True)):
        text = f"{name} ({of})"
        panels[1].text(0.03, 0.1 + 0.6 * i, text, color=COLORS[1 + i], va="center", fontsize=9)
    picture.subplots_adjust(left=0.08, right=0.97, bottom=0.16, top=0.81, wspace=0.95)
    return picture


def _dots(axes, shares: Shares, color: str, lower: float = 0) -> None:
    """Draw a dot and its interval for each share, a bit below its row for a part."""
    for y, (n, of) in enumerate(shares.values()):
        axes.hlines(y + lower, *wilson(n, of), color=color, linewidth=3 if lower else 6, alpha=0.3)
        size = 4 if lower else 6
        axes.plot(n / of, y + lower, "o", color=color, markersize=size, clip_on=False)
