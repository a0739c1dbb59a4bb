"""Drawings of a machine's roofline, and of a scaling law's exponent."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.lessons.lesson_15.roofline import Roofline
from transformer_lesson.lessons.lesson_15.scaling_law import Run
from transformer_lesson.training.scaling import ScalingLaw

Point = tuple[float, float, str]
"""Operations per byte, operations per second, and a label."""
BELOW, ABOVE = (0, -19, "center"), (0, 8, "center")
LOOKS = {  # one mark for each thing, in every drawing: its style, and where its labels are, in turn
    "feed_forward": ({"marker": "o", "color": COLORS[0]}, [BELOW]),
    "from a cache": ({"marker": "o", "color": COLORS[0], "mfc": "none"}, [ABOVE]),
}


def under_the_roof(
    title: str,
    alt: str,
    machine: Roofline,
    series: Mapping[str, tuple[str, Iterable[Point]]],
    pairs: Iterable[tuple[Point, Point]] = (),
) -> Figure:
    """Return a roofline with points.

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see it needs to know.
        machine: whose limits are drawn.
        series: by their name in the legend, which of `LOOKS` they have, and the points.
        pairs: points that a line joins.
    """
    drawing, axes = figure(title, alt, 7.0, 3.8)
    edge, lowest = machine.operations / machine.bandwidth, machine.operations
    across = [0.45, edge, 128]  # left of it, room for labels
    axes.plot(across, [machine.at(x) / 1e9 for x in across], color=COLORS[1], zorder=1)
    words = {"color": COLORS[1], "fontsize": 9, "ha": "right"}
    axes.text(edge / 2.9, machine.at(edge / 1.9) / 1e9, "memory’s limit", **words)
    axes.text(edge, 1.15 * machine.operations / 1e9, "the processor’s limit", **words)
    for start, end in pairs:
        axes.plot(start[0:1] + end[0:1], [start[1] / 1e9, end[1] / 1e9], color="#aaaaaa", zorder=1)
    for name, (look, points) in series.items():
        style, places = LOOKS[look]
        x, y, labels = zip(*points, strict=True)
        lowest = min(lowest, *y)
        y = [speed / 1e9 for speed in y]
        axes.plot(x, y, ls="none", ms=8, mew=1.6, label=name, **style)
        places = [*places, *places[-1:] * len(x)]  # the last is for all that follow, too
        for *point, label, (right, up, side) in zip(x, y, labels, places, strict=False):
            beside = {"xytext": (right, up), "textcoords": "offset points", "fontsize": 9}
            beside |= {"color": style["color"], "linespacing": 1.0}
            axes.annotate(label, point, ha=side, va="center", **beside)
    axes.set(xscale="log", yscale="log", xlim=(0.22, 140))
    axes.set(xlabel="operations per byte (log)", ylabel="billion operations a second (log)")
    axes.set(xticks=[0.5, 1, 2, 4, 8, 16, 32, 64], yticks=[1, 2, 5, 10, 20, 50, 100, 200, 500])
    axes.set_ylim(lowest / 2.2e9, 2 * machine.operations / 1e9)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    return drawing


def exponents_compared(
    title: str,
    alt: str,
    laws: Mapping[float, ScalingLaw],
    runs: Sequence[Run],
    new: Sequence[Run],
) -> Figure:
    """Return a figure of laws with several alphas, near the runs and far beyond them.

    Args:
        title: the claim that the figure supports.
        alt: what a reader who cannot see it needs to know.
        laws: at most four, each the closest with this alpha.
        runs: of the largest amount of text, from the grid.
        new: of a larger model on as much text, which no law was fitted to.
    """
    drawing, (near, far) = figure(title, alt, 8.4, 3.3, columns=2)
    drawing.subplots_adjust(right=0.84, wspace=0.25)
    size, tokens, first = new[0].size, runs[0].tokens, min(run.size for run in runs)
    for axes, last in ((near, 1.15 * size), (far, 1e10)):
        across = [first * (last / first) ** (step / 60) for step in range(61)]
        for (alpha, law), color in zip(laws.items(), COLORS, strict=False):
            losses = [law.loss(n_weights, tokens) for n_weights in across]
            axes.plot(across, losses, color=color, lw=1.5, label=f"alpha {alpha:g}")
        axes.plot(
            [run.size for run in runs],
            [run.loss for run in runs],
            "o",
            color="0.35",
            mfc="none",
            ms=4,
        )
        axes.plot([size] * len(new), [run.loss for run in new], "^", color="black", mfc="none")
        axes.set(xscale="log", xlabel="weights (log)")
    for (alpha, law), color in zip(laws.items(), COLORS, strict=False):
        text = f"alpha {alpha:g}, E {law.E:.1f}".replace("-", "−")
        for axes, x, label in ((near, 1.15 * size, f"{alpha:g}"), (far, 1e10, text)):
            _beside(axes, (x, law.loss(x, tokens)), label, color)
    _finish_near(near)
    far.set(ylim=(0.4, None), xticks=[1e4, 1e6, 1e8, 1e10])
    far.xaxis.set_minor_locator(NullLocator())
    far.set_title(f"far beyond, still {tokens:,} characters (E: the floor)", fontsize=9)
    return drawing


def _beside(axes: Axes, end: tuple[float, float], label: str, color: str) -> None:
    """Write a line's name at its right end, outside the axes."""
    look = {"color": color, "va": "center", "annotation_clip": False, "fontsize": 8}
    axes.annotate(label, end, xytext=(5, 0), textcoords="offset points", **look)


def _finish_near(near: Axes) -> None:
    """Give the left panel its legend of runs, its ticks and its title."""
    near.plot([], [], "o", color="0.35", mfc="none", ms=4, label="runs in the grid")
    near.plot([], [], "^", color="black", mfc="none", label="the new model")
    near.legend(*_last_two(near), fontsize=8.5, frameon=False, loc="upper right")
    near.set_xticks([20_000, 50_000, 100_000, 200_000], ["20k", "50k", "100k", "200k"])
    near.xaxis.set_minor_formatter("")
    near.set(ylabel="nats per character")
    near.set_title("near the runs", fontsize=9)


def _last_two(axes: Axes) -> tuple[list, list]:
    """Return the last two entries of a legend: handles and labels."""
    handles, labels = axes.get_legend_handles_labels()
    return handles[-2:], labels[-2:]
