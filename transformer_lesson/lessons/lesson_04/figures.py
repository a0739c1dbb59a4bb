"""One picture: where heads look, beside what their absence costs.

Short because there is a single figure.
"""

from collections.abc import Mapping

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.intervals import wilson

Shares = Mapping[str, tuple[int, int]]


def looks_and_needs(title: str, looks: tuple[str, Shares], needs: tuple[str, Shares]) -> Figure:
    """Return two panels of shares: a row for each name, a dot, and its 95 % interval as a bar.

    Args:
        title: the claim that the figure supports.
        looks, needs: what a panel's shares are, and by name, from top to bottom, (count, of).
    """
    told = [
        f"{heading}: " + ", ".join(f"{name} {n / of:.2f}" for name, (n, of) in shares.items())
        for heading, shares in (looks, needs)
    ]
    picture, panels = figure(title, f"{title}. {'; '.join(told)}.", 9.0, 3.3, columns=2)
    for axes, color, (heading, shares) in zip(panels, COLORS, (looks, needs), strict=False):
        for y, (n, of) in enumerate(shares.values()):
            axes.hlines(y, *wilson(n, of), color=color, linewidth=6, alpha=0.3)
            axes.plot(n / of, y, "o", color=color, markersize=6, clip_on=False)
        axes.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5), xlabel="share; bar: 95 % interval")
        axes.set_yticks(range(len(shares)), shares)
        axes.set_title(heading, fontsize=10)
        axes.grid(axis="x", alpha=0.3)
    picture.subplots_adjust(left=0.08, right=0.97, bottom=0.17, top=0.8, wspace=0.95)
    return picture
