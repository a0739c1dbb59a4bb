"""Drawings of a machine's roofline, and of a scaling law's exponent."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.lessons.lesson_15.roofline import Roofline
from transformer_lesson.lessons.lesson_15.scaling_law import Run
from transformer_lesson.training.scaling import ScalingLaw

PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind a label, above lines
Point = tuple[float, float, str]
"""Operations per byte, operations per second, and a label."""
STYLES = (  # of series, in order: of its marks, and where their labels are
    ({"marker": "o", "color": COLORS[0]}, (8, -12, "left")),
    ({"marker": "o", "color": COLORS[2], "mfc": "none"}, (0, 8, "center")),
    ({"marker": "s", "color": COLORS[6], "mfc": "none"}, (-8, -3, "right")),
)


def under_the_roof(
    title: str,
    alt: str,
    machine: Roofline,
    series: Mapping[str, Iterable[Point]],
    pairs: Iterable[tuple[Point, Point]] = (),
) -> Figure:
    """Return a roofline with points.

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see it needs to know.
        machine: whose limits are drawn.
        series: points by their name in the legend: first dots, then rings, then squares.
        pairs: points that a line joins.
    """
    drawing, axes = figure(title, alt, 7.0, 3.8)
    edge, lowest = machine.operations / machine.bandwidth, machine.operations
    across = [0.25, edge, 128]
    axes.plot(across, [machine.at(x) / 1e9 for x in across], color=COLORS[1], zorder=1)
    words = {"color": COLORS[1], "fontsize": 9, "ha": "right"}
    axes.text(edge / 2.9, machine.at(edge / 1.9) / 1e9, "memory’s limit", **words)
    axes.text(edge, 1.15 * machine.operations / 1e9, "the processor’s limit", **words)
    for one, other in pairs:
        axes.plot(one[0:1] + other[0:1], [one[1] / 1e9, other[1] / 1e9], color="#aaaaaa", zorder=1)
    for (name, points), (style, (right, up, side)) in zip(series.items(), STYLES, strict=False):
        x, y, labels = zip(*points, strict=True)
        lowest = min(lowest, *y)
        y = [one / 1e9 for one in y]
        axes.plot(x, y, ls="none", ms=8, mew=1.6, label=name, **style)
        for place, label in zip(zip(x, y, strict=True), labels, strict=True):
            axes.annotate(
                label,
                place,
                (right, up),
                textcoords="offset points",
                ha=side,
                fontsize=9,
                bbox=PLAIN,
            )
    axes.set(xscale="log", yscale="log", xlim=(0.22, 140))
    axes.set(xlabel="operations per byte (log)", ylabel="billion operations a second (log)")
    axes.set(xticks=[0.5, 1, 2, 4, 8, 16, 32, 64], yticks=[1, 2, 5, 10, 20, 50, 100, 200, 500])
    axes.set_ylim(lowest / 2.2e9, 2 * machine.operations / 1e9)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    return drawing


def _law_beside_runs(axes, law: ScalingLaw, runs: Sequence[Run], color: str, last: float) -> None:
    """Draw losses over sizes on a log axis, and a law's curve through them up to a size."""
    tokens = runs[0].tokens
    first = min(run.size for run in runs)
    sizes = [first * (last / first) ** (step / 60) for step in range(61)]
    axes.plot(sizes, [law.loss(size, tokens) for size in sizes], color=color, lw=1.8)
    axes.plot([run.size for run in runs], [run.loss for run in runs], "o", color="#555555", ms=3)
    axes.set(xscale="log")


def _one_alpha(
    axes: Axes,
    alpha: float,
    law: ScalingLaw,
    misfit: float,
    runs: Sequence[Run],
    new: Sequence[Run],
    color: str,
) -> None:
    """Draw a law beside the runs and a larger model's, up to that model."""
    losses, size = [run.loss for run in runs], new[0].size
    _law_beside_runs(axes, law, runs, color, 1.1 * size)
    axes.plot([size] * len(new), [run.loss for run in new], "^", color="black", mfc="none")
    axes.set_title(f"alpha {alpha:g}, E {law.E:.1f}\nmisfit {misfit:.3f}", fontsize=9, color=color)
    axes.set_xlabel("weights (log)", fontsize=8)
    axes.set(ylim=(min(losses) - 0.15, max(losses) + 0.08))
    axes.set_xticks([20_000, 200_000], ["20k", "200k"])
    axes.xaxis.set_minor_formatter("")


def exponents_compared(
    title: str,
    alt: str,
    laws: Mapping[float, ScalingLaw],
    misfits: Mapping[float, float],
    runs: Sequence[Run],
    new: Sequence[Run],
    noise: float,
    kept: tuple[float, float],
) -> Figure:
    """Return laws with several alphas: beside the runs, far beyond them, and their misfits.

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see it needs to know.
        laws: at most four, each the closest with this alpha.
        misfits: of the closest law with each of many alphas, in nats.
        runs: of the largest amount of text, from the grid.
        new: of a larger model on as much text, which no law was fitted to.
        noise: between seeds, in nats.
        kept: the lowest and the highest alpha of 90 of 100 laws.
    """
    drawing, above = figure(title, alt, 7.2, 5.4, columns=len(laws))
    drawing.subplots_adjust(top=0.83, bottom=0.59, wspace=0.1)
    far, below = (drawing.add_axes([left, 0.1, 0.38, 0.33]) for left in (0.11, 0.585))
    size = new[0].size
    for axes, (alpha, law), color in zip(above, laws.items(), COLORS, strict=False):
        _one_alpha(axes, alpha, law, misfits[alpha], runs, new, color)
        _law_beside_runs(far, law, runs, color, 1e10)
        end = law.loss(1e10, runs[0].tokens)
        far.text(2e10, end, f"alpha {alpha:g}", color=color, va="center", fontsize=9)
        below.plot([alpha], [misfits[alpha]], "o", color=color)
        if axes is not above[0]:
            axes.set_yticklabels([])
    above[0].set_ylabel("nats per character")
    far.plot([size] * len(new), [run.loss for run in new], "^", color="black", mfc="none", ms=4)
    far.plot([], [], "^", color="black", mfc="none", label="the new model, measured")
    far.legend(fontsize=8, frameon=False, loc="upper right", handletextpad=0.2)
    far.set_title(f"all after {runs[0].tokens:,} characters", fontsize=9)
    far.set(xlabel="weights (log)", ylabel="nats per character", xlim=(1e4, 1e13))
    far.set_xticks([1e4, 1e6, 1e8, 1e10])
    far.xaxis.set_minor_locator(NullLocator())
    below.plot([*misfits], [*misfits.values()], color="#999999", zorder=1)
    below.axvspan(*kept, color="#e8e8e8", lw=0, zorder=0)
    below.text(kept[0] + 0.01, max(misfits.values()), "90 of 100\nlaws", va="top", fontsize=8)
    below.axhline(noise, color="black", lw=0.8, ls=":")
    below.text(2, noise - 0.0004, "noise between seeds", ha="right", va="top", fontsize=9)
    below.set(xlabel="alpha", ylabel="misfit, nats", ylim=(noise - 0.003, None))
    for one in (far, below):
        one.spines[["top", "right"]].set_visible(False)
    return drawing
