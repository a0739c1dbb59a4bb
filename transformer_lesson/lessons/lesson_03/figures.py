"""Places as clock hands; training runs of the smallest attention model, a dot each, all of them."""

from collections.abc import Mapping, Sequence

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure

Shares = Sequence[float]


def hands(title: str, words: Sequence[str], codes, turned: tuple[int, int]) -> Figure:
    """Return a clock with a hand for each word's place.

    Args:
        title: the claim that the figure supports.
        words: one for each place.
        codes: the tips of the hands, shape (place, 2).
        turned: two places; an arrow named R leads from the hand of one to that of the other.
    """
    tips = as_array(codes)
    listed = ", ".join(
        f"{i} {word} ({x:.2f}, {y:.2f})"
        for i, (word, (x, y)) in enumerate(zip(words, tips, strict=True))
    )
    picture, axes = figure(title, f"{title}. Tips of the hands: {listed}.", width=4.6, height=3.6)
    for i, (word, (x, y)) in enumerate(zip(words, tips, strict=True)):
        color = COLORS[1] if word == "the" else COLORS[0]
        axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2})
        side = "center" if abs(x) < 0.3 else "left" if x > 0 else "right"
        axes.text(1.1 * x, 1.12 * y, f"{i} {word}", color=color, ha=side, va="center", fontsize=10)
    start, end = (0.6 * tips[i] for i in turned)
    bent = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.25", "color": COLORS[2], "lw": 2}
    axes.annotate("", end, start, arrowprops=bent)
    middle = (start + end) * 0.4
    axes.text(*middle, "R", color=COLORS[2], ha="center", va="center", fontsize=11)
    axes.set(xlim=(-1.7, 1.7), ylim=(-1.25, 1.25), aspect="equal")
    axes.set_axis_off()
    picture.subplots_adjust(0.02, 0.02, 0.98, 0.88)
    return picture


def runs(
    title: str, shares: Mapping[str, Shares], lines: Mapping[str, float], reached: float
) -> Figure:
    """Return a figure with a row for each variant and a dot for each of its runs.

    Args:
        title: the claim that the figure supports.
        shares: of right answers in each run, by variant, from top to bottom.
        lines: marked shares, by name.
        reached: the share from which a run counts as learned; their number is at the right.
    """
    ranges = [f"{name}: {min(row):.2f} to {max(row):.2f}" for name, row in shares.items()]
    height = 1.4 + 0.45 * len(shares)
    picture, axes = figure(title, f"{title}. {'; '.join(ranges)}.", width=7, height=height)
    for y, row in enumerate(shares.values()):
        # side by side where they are equal
        heights = [y + 0.5 * (i / max(1, len(row) - 1) - 0.5) for i in range(len(row))]
        axes.plot(row, heights, "o", color=COLORS[y], markersize=5)
        learned = f"{sum(share >= reached for share in row)} of {len(row)} reach {reached}"
        axes.text(1.06, y, learned, color=COLORS[y], va="center", fontsize=9)
    for name, x in lines.items():
        axes.axvline(x, linestyle=":", color="gray")
        axes.text(x, -0.72, f"{name} {x:.2f}", ha="center", fontsize=9)
    axes.set(xlim=(0.3, 1.03), ylim=(len(shares) - 0.4, -0.6), xlabel="share of articles right")
    axes.set_yticks(range(len(shares)), shares)
    picture.subplots_adjust(left=0.22, right=0.76, top=0.72)
    return picture
