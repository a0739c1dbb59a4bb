"""Training runs of the smallest attention model: one dot for each run, none left out."""

from collections.abc import Mapping, Sequence

from transformer_lesson.figures.plots import COLORS, Figure, figure

Shares = Sequence[float]


def runs(title: str, shares: Mapping[str, Shares], lines: Mapping[str, float]) -> Figure:
    """Return a figure with a row for each variant and a dot for each of its runs.

    Args:
        title: the claim that the figure supports.
        shares: of right answers in each run, by variant, from top to bottom.
        lines: marked shares, by name.
    """
    told = [f"{name}: {min(row):.2f} to {max(row):.2f}" for name, row in shares.items()]
    picture, axes = figure(title, f"{title}. {'; '.join(told)}.", width=7, height=2.6)
    for y, row in enumerate(shares.values()):
        # side by side where they are equal
        heights = [y + 0.5 * (i / max(1, len(row) - 1) - 0.5) for i in range(len(row))]
        axes.plot(row, heights, "o", color=COLORS[y], markersize=5)
    for name, x in lines.items():
        axes.axvline(x, linestyle=":", color="gray")
        axes.text(x, -0.72, f"{name} {x:.3f}", ha="center", fontsize=9)
    axes.set(xlim=(0.3, 1.03), ylim=(len(shares) - 0.4, -0.6), xlabel="articles right")
    axes.set_yticks(range(len(shares)), shares)
    picture.subplots_adjust(left=0.33, top=0.78)
    return picture


def root(title: str, scaled: Mapping[int, Shares], unscaled: Mapping[int, Shares]) -> Figure:
    """Return a figure with a dot for each run, by head size, with the root and without it.

    Args:
        title: the claim that the figure supports.
        scaled, unscaled: shares of right answers in each run, by d_k.
    """
    told = [
        f"d_k {size}: with the root {min(scaled[size]):.2f} to {max(scaled[size]):.2f}, "
        f"without {min(unscaled[size]):.2f} to {max(unscaled[size]):.2f}"
        for size in scaled
    ]
    picture, axes = figure(title, f"{title}. {'; '.join(told)}.", width=7, height=3)
    for rows, shift, color, name in (
        (scaled, -0.1, 0, "with the root"),
        (unscaled, 0.1, 1, "without"),
    ):
        for x, row in enumerate(rows.values()):
            axes.plot([x + shift] * len(row), row, "o", color=COLORS[color], alpha=0.8)
        last = len(rows) - 1 + shift
        middle = sum([*rows.values()][-1]) / len([*rows.values()][-1])
        axes.text(last + 0.12, middle, name, color=COLORS[color], va="center", fontsize=9)
    axes.set(
        xlim=(-0.5, len(scaled) + 0.2), ylim=(0.3, 1.03), xlabel="d_k", ylabel="articles right"
    )
    axes.set_xticks(range(len(scaled)), map(str, scaled))
    return picture
