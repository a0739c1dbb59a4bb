"""Stored runs of comparisons and rewards, a line for each seed; and what an adapter adds."""

from collections.abc import Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from transformer_lesson.figures.plots import (
    COLORS,
    DIVERGING,
    Figure,
    as_array,
    draw_matrix,
    figure,
)

SIDE, THIN = 2.0, 0.14  # inches
LOOKS = (("--", COLORS[3]), ("-", COLORS[1]), ("-", COLORS[0]), ("-", COLORS[2]))
GRAYS = (("-", "0.75"), ("-", COLORS[4]), ("--", "0.5"), (":", "0.25"))


def comparisons(runs: Sequence[dict]) -> Figure:
    """Return what three runs of DPO write, and which sentences of other kinds they still get right.

    Args:
        runs: as `taste` stored them, a run for each seed.
    """
    steps, looks = [int(step) for step in runs[0]["dpo"]], [[*run["dpo"].values()] for run in runs]
    alt = (
        "Left, over 60 steps: pairs won rise from 0 to 1, the rejected sentence falls from a half "
        "to 0, the chosen one rises a little, a third sentence rises to 0.8. Right: sentences with "
        "wenn fall from 1 to 0 between steps 20 and 40; the other kinds stay above 0.9."
    )
    title = "The rejected sentence goes, a third one comes, and one rule of German is lost"
    picture, (left, right) = figure(title, alt, 8.4, 3.2, columns=2)
    ways = {
        "pairs won": lambda one: one["wins"],
        "writes the rejected": lambda one: one["writes"]["rejected"],
        "writes the chosen": lambda one: one["writes"]["chosen"],
        "writes a third": lambda one: 1 - sum(one["writes"].values()),
    }
    kinds = {kind: lambda one, kind=kind: one["others"][kind] for kind in looks[0][0]["others"]}
    for axes, lines, lines_look in ((left, ways, LOOKS), (right, kinds, GRAYS)):
        for (name, value), (dashes, color) in zip(lines.items(), lines_look, strict=True):
            for i, run in enumerate(looks):
                shares = [value(one) for one in run]
                label = name if i == 0 else None
                axes.plot(steps, shares, dashes, color=color, linewidth=1.2, label=label)
        axes.set(xlabel="step of DPO", ylim=(-0.03, 1.03))
        axes.legend(fontsize=8, loc="center right")
    left.set_ylabel("share of 150 sentences")
    right.set_ylabel("right, of 100 of each kind")
    return picture


def sharpened(ks: Sequence[int], before: Sequence[float], after: Sequence[float]) -> Figure:
    """Return pass@k over k, before and after rewards."""
    title = "What 64 draws could do before, one draw does now"
    alt = (
        f"pass@k over k from {ks[0]} to {ks[-1]}. Before: from {before[0]:.2f} up to "
        f"{before[-1]:.2f}. After: from {after[0]:.2f} up to {after[-1]:.2f}."
    )
    picture, axes = figure(title, alt)
    for shares, name, color in ((before, "before", COLORS[1]), (after, "after", COLORS[0])):
        axes.plot(ks, shares, "o-", color=color, label=name)
    axes.set(xlabel="k, draws (log)", ylabel="pass@k", xscale="log", ylim=(0, 1.03))
    axes.set_xticks(ks, ks)
    axes.minorticks_off()
    axes.legend()
    return picture


def hasty(runs: Sequence[dict]) -> Figure:
    """Return the reward that counts words, and the shares that are right with it and without.

    Args:
        runs: as `hacked` stored them, a run for each seed.
    """
    title = "The reward rises in all three runs; in two the sentences get worse"
    alt = (
        "Left: the hasty reward over 60 steps rises to 0.98 in three seeds. Right: the share "
        "exactly right. With the exact reward all rise to 0.99; with the hasty one two fall to "
        "0.1, and one rises."
    )
    picture, (left, right) = figure(title, alt, 8.4, 3.0, columns=2)
    for i, run in enumerate(runs):
        left.plot(run["words_found"]["curve"], color=COLORS[i], linewidth=1, label=f"seed {i}")
        for name, dashes in (("words_found", "o-"), ("exactly", "o:")):
            shares = [one["greedy"] for one in (run["before"], *run[name]["steps"].values())]
            right.plot([0, 20, 40, 60], shares, dashes, color=COLORS[i], markersize=4)
    left.set(xlabel="step", ylabel="hasty reward", ylim=(0, 1.03))
    left.legend(fontsize=8)
    right.set(xlabel="step", ylabel="exactly right, of 200", ylim=(-0.03, 1.06))
    right.plot([], [], "-", color="black", label="rewarded by the hasty one")
    right.plot([], [], ":", color="black", label="control: by the exact one")
    right.legend(fontsize=8, loc="center")
    return picture


def distances(texts: Sequence[str], looks: Sequence[Sequence[Sequence[tuple]]]) -> Figure:
    """Return sums with their work, a row each, and from how far back each digit is read.

    Args:
        texts: prompts with their answers.
        looks: of each, as `additions.looks`.
    """
    numbers = [[[one[2] for one in digits] for digits in zip(*each, strict=True)] for each in looks]
    told = [
        f"{text}: the first number's digits from {', '.join(map(str, first))} back, the second's "
        f"from {', '.join(map(str, second))}"
        for text, (first, second) in zip(texts, numbers, strict=True)
    ]
    title = "One digit more: only the first number's digits stand further back"
    picture = Figure(title, f"{'; '.join(told)}.", 8.4, 3.8)
    panels = picture.subplots(len(texts), 1)
    for axes, text, steps in zip(panels, texts, looks, strict=True):
        for place, letter in enumerate(text):
            axes.text(place, 0, letter, ha="center", va="center", family="monospace")
        for digits in steps:
            for look, up, color in zip(digits, (1, -1), COLORS[1::-1], strict=True):
                _arc(axes, look, up, color)
        axes.set(xlim=(-1, max(map(len, texts))), ylim=(-4.6, 5.0))
        axes.axis("off")
    for number, y, color in (("first", 3.6, COLORS[1]), ("second", -3.6, COLORS[0])):
        said = f"the {number} number's digits,\nand how far back they stand"
        panels[0].text(len(texts[0]) - 6.5, y, said, color=color, va="center", fontsize=9)
    picture.subplots_adjust(0.02, 0.02, 0.98, 0.9, hspace=0.05)
    return picture


def _arc(axes: Axes, look: tuple[int, int, int], up: int, color: str) -> None:
    """Draw an arc from the place that writes to the digit it reads, with the distance on it."""
    writes, stands, apart = look
    height, steps = 0.9 + 0.135 * apart, [i / 40 for i in range(41)]
    across = [writes + (stands - writes) * step for step in steps]
    heights = [up * (0.75 + 4 * height * step * (1 - step)) for step in steps]
    axes.plot(across, heights, color=color, linewidth=1.1)
    axes.annotate(
        "",
        (across[-1], heights[-1]),
        (across[-3], heights[-3]),
        arrowprops={"arrowstyle": "->", "color": color, "shrinkA": 0, "shrinkB": 0},
    )
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    at = across[20], heights[20]
    axes.text(*at, f"{apart}", color=color, ha="center", va="center", fontsize=9, bbox=box)


def adapted_matrix(
    W: Float[Tensor, "d_out d_in"],
    A: Float[Tensor, "rank d_in"],
    B: Float[Tensor, "d_out rank"],
    alpha: float,
    title: str,
) -> Figure:
    """Return a drawing of W, of B and A along the sides of their product, and of the sum.

    Rows are sorted by B's first column, columns by A's first row; the labels at the ends say which
    they are. The three large matrices share one scale; B and A have their own.

    Args:
        W: the frozen matrix.
        A, B, alpha: as `lora`.
        title: the claim that the figure supports.
    """
    rows, columns = B[:, 0].argsort(), A[0].argsort()
    W, A, B = (one.detach() for one in (W[rows][:, columns], A[:, columns], B[rows]))
    change = alpha / A.size(0) * (B @ A)  # (d_out, d_in)
    alt = (
        f"A frozen matrix, {W.size(0)} × {W.size(1)}, looks like noise. B, {B.size(0)} × "
        f"{B.size(1)}, times A, {A.size(0)} × {A.size(1)}, fades from one sign in two corners to "
        "the other sign in the other two. In the sum the corners are tinted."
    )
    picture, top = Figure(title, alt, 9.0, 3.3), float(as_array(W.abs().max()))
    scale = {"cmap": DIVERGING, "vmin": -top, "vmax": top}
    names = "W, frozen", "", "what runs: the sum"
    for left, matrix, name in zip((0.75, 3.55, 6.1), (W, change, W + change), names, strict=True):
        axes = _axes(picture, left, 0.6, SIDE, SIDE)
        image = draw_matrix(axes, matrix, numbers=False, **scale)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("columns, by A")
        axes.set_xticks([0, W.size(1) - 1], [f"{columns[0]}", f"{columns[-1]}"], fontsize=8)
        ends = [f"{rows[0]}", f"{rows[-1]}"] if matrix is not change else ["", ""]
        axes.set_yticks([0, W.size(0) - 1], ends, fontsize=8)
    picture.axes[0].set_ylabel("rows, by B")
    _strip(picture, B, (3.0, 0.6, THIN * B.size(1), SIDE), f"B, {B.size(0)} × {B.size(1)}")
    place = 3.55, 0.6 + SIDE + 0.08, SIDE, THIN * A.size(0)
    _strip(picture, A, place, f"A, {A.size(0)} × {A.size(1)}")
    for left, sign in ((2.86, "+"), (5.72, "=")):
        picture.text(left / 9.0, 1.6 / 3.3, sign, fontsize=18, ha="center", va="center")
    picture.colorbar(image, cax=_axes(picture, 8.25, 0.6, 0.1, SIDE), label="weight")
    return picture


def _strip(picture: Figure, thin: Tensor, place: tuple[float, ...], name: str) -> None:
    """Draw one of the two thin matrices, on its own scale."""
    axes, most = _axes(picture, *place), float(as_array(thin.abs().max()))
    draw_matrix(axes, thin, numbers=False, cmap=DIVERGING, vmin=-most, vmax=most)
    axes.set(xticks=[], yticks=[])
    axes.set_title(name, fontsize=9, pad=3)


def _axes(picture: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes at a place given in inches."""
    across, up = picture.get_size_inches()
    return picture.add_axes((left / across, bottom / up, width / across, height / up))
