"""Drawings of numbers in few bits, of a comparison by layer, and of heads found and removed."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from transformer_lesson.checkpoints.layer_by_layer import Comparison
from transformer_lesson.figures.plots import COLORS, Figure, as_array, curves, figure, heatmap
from transformer_lesson.lessons.lesson_12.removal import Part

Cost = tuple[float, float, float]
LEVEL = "#c5d2de"
INK, GRAY = "#22303c", "#566372"


def block_of_levels(title: str, numbers, levels, exact=None) -> Figure:
    """Return a figure of the numbers of one block, as dots on its levels.

    Args:
        title: the claim that the figure supports.
        numbers: of the block, each on one of the levels.
        levels: the block's possible values, smallest first.
        exact: the numbers before rounding, if known; a line connects each to its dot.
    """
    numbers, levels = as_array(numbers), as_array(levels)
    used = len(np.unique(numbers))
    alt = (
        f"{len(numbers)} numbers on {len(levels)} levels from {levels[0]:.2f} to {levels[-1]:.2f}, "
        f"{used} of which are used."
    )
    places = np.arange(len(numbers))
    if exact is not None:
        exact = as_array(exact)
        alt += f" No number was moved by more than {np.abs(exact - numbers).max():.4f}."
    picture, axes = figure(title, alt, width=8.0, height=3.6)
    axes.hlines(levels, -0.5, len(numbers) - 0.5, color=LEVEL, linewidth=0.8)
    if exact is not None:
        axes.vlines(places, exact, numbers, color=COLORS[1], linewidth=1.2)
        hollow = {"markersize": 4, "markerfacecolor": "white", "label": "before"}
        axes.plot(places, exact, "o", color=COLORS[1], **hollow)
    axes.plot(places, numbers, "o", color=COLORS[0], markersize=5, label="kept")
    axes.set(xlabel="place in the block", ylabel="number", xlim=(-0.7, len(numbers) - 0.3))
    axes.text(len(numbers) - 0.2, levels[-1], "step 15", fontsize=9, va="center", color="#566372")
    axes.text(len(numbers) - 0.2, levels[0], "step 0", fontsize=9, va="center", color="#566372")
    if exact is not None:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9, frameon=False)
    picture.subplots_adjust(right=0.87)
    return picture


def block_of_bytes(title: str, block) -> Figure:
    """Return a figure of a Q4_1 block's 20 bytes, its first byte of steps taken apart.

    Args:
        title: the claim that the figure supports.
        block: its bytes, whole numbers from 0 to 255: scale, smallest number, steps.
    """
    values = as_array(block).astype(int).tolist()
    scale, smallest = np.frombuffer(bytes(values[:4]), dtype="<f2").astype(float).tolist()
    byte = values[4]
    upper, lower = byte >> 4, byte & 15
    alt = (
        f"The 20 bytes of a block: {', '.join(map(str, values))}. The first two hold its scale, "
        f"the next two its smallest number, the other 16 two steps each. Byte 4, {byte}, is "
        f"{upper:04b} {lower:04b} in bits. Its lower half, {lower}, is the step of number 0, its "
        f"upper half, {upper}, the step of number 16. So number 0 is {scale:.3f} times {lower}, "
        f"plus {smallest:.3f}: about {scale * lower + smallest:.2f}."
    )
    picture, axes = figure(title, alt, width=9.0, height=3.0)
    axes.set(xlim=(-0.3, 32.3), ylim=(-0.9, 5.7))
    axes.set_axis_off()
    axes.set_position((0.02, 0.02, 0.96, 0.86))
    minus = ("-", "−")
    names = f"scale\n{scale:.3f}", f"smallest\n{smallest:.3f}".replace(*minus)
    parts = ((0, 2, names[0]), (2, 4, names[1]), (4, 20, "32 steps, two in each byte"))
    for (start, end, name), color in zip(parts, (*COLORS[:2], LEVEL), strict=True):
        axes.text(0.8 * (start + end), 4.55, name, ha="center", fontsize=9, color=INK)
        for i in range(start, end):
            _box(axes, (1.6 * i, 3.5), 1.6, color, str(values[i]))
    halves = ((upper, 16, 5.2, COLORS[3]), (lower, 0, 7.6, COLORS[2]))
    for i in range(32):
        _box(axes, (i, 0), 1, LEVEL, "" if i in (0, 16) else str(i))
    for step, number, x, color in halves:
        axes.plot([x + 1.2, number + 0.5], [2, 0.8], color=color, lw=1.5)
        _box(axes, (x, 2), 2.4, color, f"{step:04b}")
        _box(axes, (number, 0), 1, color, str(number))
    sign, size = ("−" if smallest < 0 else "+"), f"{abs(smallest):.3f}"
    number = f"{scale * lower + smallest:.2f}".replace(*minus)
    sum_ = f"step {lower}: {scale:.3f} · {lower} {sign} {size} ≈ {number}"
    axes.text(0, -0.45, sum_, fontsize=9, color=INK)
    axes.text(16.5, -0.45, f"step {upper}", ha="center", fontsize=9, color=INK)
    for x, edge in ((6.4, 5.2), (8.0, 10.0)):
        axes.plot([x, edge], [3.5, 2.8], ":", color=INK, lw=0.8)
    axes.text(32, -0.45, "the 32 numbers", ha="right", fontsize=9, color=INK)
    return picture


def _box(axes, corner, width, color: str, text: str) -> None:
    ink = INK if color == LEVEL else "white"
    axes.add_patch(Rectangle(corner, width, 0.8, facecolor=color, edgecolor="white", lw=1.5))
    middle = corner[0] + width / 2, corner[1] + 0.4
    axes.text(*middle, text, ha="center", va="center", fontsize=8, color=ink)


def second_time(title: str, with_all: dict[str, float], without: dict[str, list[float]]) -> Figure:
    """Return a figure of a model's losses without some of its heads, beside the whole model's.

    Args:
        title: the claim that the figure supports.
        with_all: by text read, losses of the whole model, as dashed lines.
        without: by heads removed, the losses of one or several trials on the second copy.
    """
    text = "; ".join(f"{name}: {', '.join(f'{x:.1f}' for x in xs)}" for name, xs in without.items())
    whole_losses = ", ".join(f"{name} {loss:.1f}" for name, loss in with_all.items())
    alt = f"Losses without some heads. {text}. Whole model: {whole_losses}."
    picture, axes = figure(title, alt, width=7.5, height=0.55 * len(without) + 1.4)
    for name, loss in with_all.items():
        axes.axvline(loss, color="#566372", linewidth=1, linestyle="--")
        axes.text(loss, -0.66, f"all heads,\n{name}", color="#566372", fontsize=9, ha="center",
                  va="bottom", parse_math=False)  # fmt: skip
    for row, losses in enumerate(without.values()):
        axes.plot(losses, [row] * len(losses), "o", color=COLORS[row], alpha=0.7, markersize=8)
    axes.set_yticks(range(len(without)), list(without))
    axes.set(xlim=(0, 1.08 * max(with_all.values())), ylim=(len(without) - 0.5, -0.6))
    axes.set(xlabel="loss on the second copy, nats a token", ylabel="without")
    picture.subplots_adjust(left=0.32, bottom=0.27, top=0.7)
    return picture


def errors_by_size(title: str, sizes: Sequence[int], errors: Sequence[float]) -> Figure:
    """Return a figure of a matrix's relative errors in 4 bits over the numbers that share a scale.

    Args:
        title: the claim that the figure supports.
        sizes: numbers in a block, the third of them Q4_1's.
        errors: relative errors, one for each size.
    """
    alt = "Relative error against the numbers in a block, from 8 to the whole matrix: " + ", ".join(
        f"{n:,} {error:.0%}" for n, error in zip(sizes, errors, strict=True)
    )
    names = "numbers in a block; below, bits a number", "relative error"
    picture = curves({"Q4": errors}, title, alt, *names, x=sizes, xscale="log")
    axes = picture.axes[0]
    axes.set_xticks(sizes, [f"{n:,}\n{4 + 32 / n:.1f}" for n in sizes], fontsize=8)
    axes.minorticks_off()
    axes.plot(sizes, errors, "o", color=COLORS[0])
    axes.annotate("Q4_1", (sizes[2], errors[2]), (3, -14), textcoords="offset points")
    return picture


def order_of_rows(title: str) -> Figure:
    """Return a figure of a small head's rows in llama.cpp's order and ours, a color per pair."""
    alt = (
        "Two rows of eight boxes, for a head of eight numbers. Above, in the file, boxes 0 and 1 "
        "have one color, 2 and 3 the next. Below, in our model, 0 and 4 have one color, 1 and 5 "
        "the next. Lines lead from each box above to its place below."
    )
    picture, axes = figure(title, alt, width=8.0, height=2.4)
    for j in range(8):
        place, color = j // 2 + 4 * (j % 2), COLORS[j // 2]  # row j of the file becomes ours
        axes.plot([j, place], [1, 0], color=color, lw=1.5, zorder=1)
        for x, y, row in ((j, 1, j), (place, 0, place)):
            axes.scatter(x, y, 420, color=color, marker="s")
            axes.text(x, y, row, color="white", ha="center", va="center", weight="bold")
    axes.set_yticks([0, 1], ["our model", "llama.cpp's file"])
    axes.set(xticks=[], xlim=(-0.6, 7.6), ylim=(-0.5, 1.5))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    picture.subplots_adjust(left=0.17, bottom=0.05)
    return picture


def sublayer_differences(comparison: Comparison) -> list[float]:
    """Return the largest difference of each sub-layer's output, as a share of its largest number.

    None is below 1e-8, so that a logarithmic axis has room for all.
    """
    parts = [part for part in comparison.layers if part.ours.count(".") == 2]
    return [max(part.largest / part.scale, 1e-8) for part in parts]


def matrix_forgotten(title: str, right: list[float], wrong: list[float]) -> Figure:
    """Return a figure of sub-layers' differences over the blocks, a matrix of block 12 wrong.

    Args:
        title: the claim that the figure supports.
        right, wrong: two numbers for each block, as `sublayer_differences` gives them.
    """
    alt = (
        "Largest difference of each sub-layer's output, as a share of its largest number, over 30 "
        "blocks. With the right weights it stays below 0.00003. With one matrix in another order "
        "it is the same up to block 12, then jumps a thousandfold and more."
    )
    lines = {"right": right, "one matrix in another order": wrong}
    picture = curves(lines, title, alt, "block", "difference, as a share", yscale="log")
    picture.axes[0].set_xticks([2 * i for i in range(0, 30, 4)], range(0, 30, 4))
    return picture


def scores_of_heads(title: str, scores, framed: Sequence[tuple[int, int]]) -> Figure:
    """Return a figure of every head's score, a column for each block, with some heads framed.

    Args:
        title: the claim that the figure supports.
        scores: from 0 to 1, shape (block, head).
        framed: heads, as (block, head), the one with the highest score first.
    """
    scores = as_array(scores)
    top = framed[0]
    blocks = [block for block, _ in framed]
    alt = (
        f"Scores of {scores.size} heads, a column for each block. The highest is "
        f"{scores[tuple(top)]:.2f}, of head {top[0]}.{top[1]}. Framed are {len(framed)} heads in "
        f"blocks {min(blocks)} to {max(blocks)}."
    )
    names = {"x_name": "block", "y_name": "head", "bar_name": "induction score"}
    picture = heatmap(scores.T, title, alt, **names, width=8.5, height=3.2, vmin=0, vmax=1)
    frames = {"facecolors": "none", "edgecolors": COLORS[1], "linewidths": 1.5}
    picture.axes[0].scatter(blocks, [head for _, head in framed], 190, marker="s", **frames)
    return picture


def picked_and_fresh(
    title: str, rows: Mapping[str, Mapping[Part, Cost]], named: Sequence[Part], what: str
) -> Figure:
    """Return a strip of dots for each set of examples, one for each head: the change without it.

    Args:
        title: the claim that the figure supports.
        rows: by set of examples, for each head its mean change and the ends of the interval.
        named: heads drawn large, with their intervals and names.
        what: changes, with its unit.
    """
    changes = "; ".join(
        f"{name}, {len(heads)} heads: "
        + ", ".join("{} {:+.2f} ({:+.2f} to {:+.2f})".format(part, *heads[part]) for part in named)
        for name, heads in rows.items()
    )
    alt = f"Change without each head alone, with 95 % intervals. {changes}."
    picture, axes = figure(title, alt, width=8.0, height=0.85 * len(rows) + 1.1)
    for y, heads in enumerate(rows.values()):
        others = [mean for part, (mean, _, _) in heads.items() if part not in named]
        axes.plot(others, [y] * len(others), "o", color=GRAY, alpha=0.35, markersize=5)
        axes.annotate(f"{len(others)} others", (0, y), (6, 9), textcoords="offset points",
                      fontsize=9, color=GRAY)  # fmt: skip
        for i, part in enumerate(named):
            mean, low, high = heads[part]
            place = y + 0.17 * (2 * i - 1)
            axes.hlines(place, low, high, color=COLORS[i], linewidth=1.5)
            axes.plot(mean, place, "o", color=COLORS[i], markersize=7)
            axes.annotate(str(part), (low, place), (-5, 0), textcoords="offset points", fontsize=9,
                          ha="right", va="center", color=COLORS[i])  # fmt: skip
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=what)
    axes.margins(x=0.1)
    picture.subplots_adjust(left=0.24, bottom=0.25, top=0.84)
    return picture


def cost_of_blocks(
    title: str, zeroed: Sequence[Cost], part: str, as_mean: Sequence[Cost]
) -> Figure:
    """Return a bar for each block, the rise of the loss without a part, and a dot for the control.

    Args:
        title: the claim that the figure supports.
        zeroed: of each block mean, lower and upper end of the interval, in nats a token.
        part: what is taken out, in words.
        as_mean: the same, with the part's mean over all tokens in place of zero.
    """

    def listed(costs) -> str:
        """Name the three blocks that cost most."""
        worst = sorted(range(len(costs)), key=lambda i: (-costs[i][0], i))[:3]
        return ", ".join(f"block {i} {costs[i][0]:+.2f}" for i in worst)

    alt = (
        f"Rise of the loss without the {part} of one block, for {len(zeroed)} blocks. Zeroed, the "
        f"most: {listed(zeroed)}. With its mean in its place: {listed(as_mean)}. Lines show 95 % "
        "intervals."
    )
    picture, axes = figure(title, alt, width=7.4, height=2.8)
    means, lows, highs = zip(*zeroed, strict=True)
    places = range(len(means))
    axes.bar(places, means, color=COLORS[0], label="zero in its place")
    axes.vlines(places, lows, highs, color=INK, linewidth=1.0)
    means, lows, highs = zip(*as_mean, strict=True)
    beside = [place + 0.25 for place in places]
    axes.plot(beside, means, "o", color=COLORS[1], markersize=4, label="its mean in its place")
    axes.vlines(beside, lows, highs, color=COLORS[1], linewidth=1.0)
    axes.set(xlabel=f"block without its {part}", ylabel="nats a token more")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.66, 1.05))  # no block costs much there
    return picture


def costs_by_score(
    title: str, heads: Mapping[Part, tuple[float, float]], named: Collection[Part]
) -> Figure:
    """Return a dot for each head: what it costs to take it away alone, over its score.

    Args:
        title: the claim that the figure supports.
        heads: induction score and cost in nats a token of each.
        named: heads that have their name beside their dot.
    """
    x, y = zip(*heads.values(), strict=True)
    costs = ", ".join(
        f"{head} {heads[head][1]:+.1f} at {heads[head][0]:.2f}" for head in sorted(named)
    )
    picture, axes = figure(title, f"Cost of each head over its score. {costs}.", 7.5, 3.0)
    axes.plot(x, y, "o", color=COLORS[0], alpha=0.5, markersize=5)
    for head in named:
        axes.annotate(str(head), heads[head], (5, 4), textcoords="offset points", fontsize=9)
    axes.axhline(0, color="black", lw=0.8)
    axes.set(xlabel="induction score", ylabel="taken away alone,\nnats on the second copy")
    return picture
