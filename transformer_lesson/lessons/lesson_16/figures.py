"""Stored runs of comparisons and rewards, a line or a dot for each seed; what an adapter adds."""

from collections.abc import Mapping, Sequence

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


def comparisons(runs: Sequence[dict]) -> Figure:
    """Return a figure of what three runs of DPO win and lose step by step.

    Args:
        runs: as `taste` stored them, a run for each seed.
    """
    title = "While DPO wins its pairs, it loses the sentences with wenn"
    alt = (
        "Over 60 steps of DPO, three seeds: pairs won rise from 0 to 1; sentences with wenn fall "
        "from 1 to 0 between steps 20 and 40; the worst other kind stays above 0.9."
    )
    picture, axes = figure(title, alt, 7.2, 2.8)
    picture.subplots_adjust(right=0.76)
    steps = [int(step) for step in runs[0]["dpo"]]
    lines = {
        "pairs won": (COLORS[0], 1.0, lambda point: point["wins"]),
        "worst other kind, right": ("0.5", 0.88, lambda point: min(_without_wenn(point))),
        "wenn, right": (COLORS[1], 0.02, lambda point: point["others"]["wenn"]),
    }
    for name, (color, height, value) in lines.items():
        for run in runs:
            shares = [value(point) for point in run["dpo"].values()]
            axes.plot(steps, shares, color=color, linewidth=1.3)
        axes.text(62, height, name, color=color, va="center", fontsize=9)
    axes.set(xlabel="step of DPO", ylabel="share", xlim=(0, 60), ylim=(-0.03, 1.05))
    return picture


def _without_wenn(point: dict) -> list[float]:
    return [share for kind, share in point["others"].items() if kind != "wenn"]


def sharpened(ks: Sequence[int], curves: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Return a figure of pass@k over k, before and after rewards, a line for each seed.

    Args:
        ks: numbers of draws.
        curves: pass@k of all seeds, after rewards and before.
    """
    spans = [
        f"{name}: from {span([line[0] for line in lines])} up to "
        f"{span([line[-1] for line in lines])}"
        for name, lines in curves.items()
    ]
    alt = f"pass@k over k from {ks[0]} to {ks[-1]}, three seeds. {'; '.join(spans)}."
    picture, axes = figure("After rewards, one draw does about as well as 64 did before", alt)
    for (name, lines), color in zip(curves.items(), COLORS, strict=False):
        for line in lines:
            axes.plot(ks, line, "o-", color=color, markersize=4, linewidth=1.2)
        axes.plot([], [], "o-", color=color, markersize=4, label=name)
    axes.set(xlabel="k, draws (log)", ylabel="pass@k", xscale="log", ylim=(0, 1.03))
    axes.set_xticks(ks, ks)
    axes.minorticks_off()
    axes.legend(title="a line for each seed", title_fontsize=9)
    return picture


def hasty(runs: Sequence[dict]) -> Figure:
    """Return a figure of a reward that counts words, and the shares right with it and without.

    Args:
        runs: as `hacked` stored them, a run for each seed.
    """
    title = "The hasty reward rises in all three runs; in two the sentences get worse"
    alt = (
        "Over 60 steps, three seeds. The hasty reward rises from 0.9 to 0.98 in all. Exactly right "
        "of 200 sentences: with the hasty reward two fall to 0.1, and one rises; with the exact "
        "reward, the control, all rise to 0.99."
    )
    picture, (reward, hacked, control) = figure(title, alt, 8.4, 2.8, columns=3)
    for seed, (run, color) in enumerate(zip(runs, COLORS, strict=False)):
        reward.plot(run["words_found"]["curve"], color=color, linewidth=1)
        for axes, name in ((hacked, "words_found"), (control, "exactly")):
            shares = [point["greedy"] for point in (run["before"], *run[name]["steps"].values())]
            axes.plot([0, 20, 40, 60], shares, "o-", color=color, label=f"seed {seed}", ms=4)
    names = "the hasty reward", "right, hasty reward", "right, exact reward (control)"
    for axes, name in zip((reward, hacked, control), names, strict=True):
        axes.set(xlabel="step", xlim=(-2, 62), ylim=(-0.03, 1.05), xticks=[0, 20, 40, 60])
        axes.set_title(name, fontsize=9)
    reward.set_ylabel("share")
    control.legend(fontsize=8.5, loc="lower right", frameon=False)
    return picture


def orders_left(runs: Sequence[dict]) -> Figure:
    """Return a figure of which of two right orders is drawn, step by step.

    Args:
        runs: as `variety` stored them, a run for each seed.
    """
    ways = {"before": ("rewards", "0"), "rewards": ("rewards", "20")}
    ways["examples"] = "examples", "120"
    ends = {
        name: span([run[way][step]["subject first"] for run in runs])
        for name, (way, step) in ways.items()
    }
    alt = (
        "Of the right draws, the share with the subject first, step by step; three seeds. Before: "
        f"{ends['before']}. After 20 steps of rewards: {ends['rewards']}. After 120 steps of "
        f"examples, the control: {ends['examples']}."
    )
    title = "Rewarded for either order, right draws lose one; shown both, they keep both"
    picture, panels = figure(title, alt, 7.2, 2.7, columns=2)
    names = {"rewards": "rewards for either", "examples": "examples of both (control)"}
    for axes, (way, name) in zip(panels, names.items(), strict=True):
        for seed, (run, color) in enumerate(zip(runs, COLORS, strict=False)):
            steps = [int(step) for step in run[way]]
            shares = [point["subject first"] for point in run[way].values()]
            axes.plot(steps, shares, "o-", color=color, markersize=4, label=f"seed {seed}")
        axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
        axes.set(xlabel="step", xticks=steps, ylim=(-0.03, 1.03))
        axes.set_title(name, fontsize=9)
    panels[0].set_ylabel("share, subject first")
    panels[0].legend(fontsize=8.5, frameon=False)
    return picture


def span(values: Sequence[float]) -> str:
    """Return the range of several seeds."""
    return f"{min(values):.2f} to {max(values):.2f}"


def _seeds(axes: Axes, row: int, values: Sequence[float], color: str, hollow: bool = False) -> None:
    """Draw a dot for each seed into a row, and a line through them."""
    axes.plot((min(values), max(values)), (row, row), color=color, linewidth=1.2, zorder=2)
    inside = "white" if hollow else color
    axes.scatter(values, [row] * len(values), 26, inside, edgecolors=color, zorder=3)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the rows' names, from top to bottom, beside faint lines."""
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)


def written(kinds: dict[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Return a figure of what is written before and after DPO.

    Args:
        kinds: by name, the shares of all seeds before and after; first chosen and rejected, then
            the kinds of other sentences.
    """
    title = "The rejected sentence is gone, and mostly other ones take its place"
    spans = [f"{name}: {span(first)}, then {span(last)}" for name, (first, last) in kinds.items()]
    alt = f"What is written before and after DPO, three seeds. {'; '.join(spans)}."
    picture, axes = figure(title, alt, 7.2, 2.7)
    picture.subplots_adjust(0.29, right=0.82)
    for row, (first, last) in enumerate(kinds.values()):
        _seeds(axes, row - 0.14, first, "0.55", hollow=True)
        _seeds(axes, row + 0.14, last, COLORS[0])
    for name, color, inside in (("before", "0.55", "white"), ("after", COLORS[0], COLORS[0])):
        axes.scatter([], [], 26, inside, edgecolors=color, label=f"{name} DPO")
    axes.legend(fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _name_rows(axes, list(kinds))
    axes.axhline(1.5, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xlabel="share of 150 sentences", xlim=(-0.02, 0.7))
    return picture


def competing(advantages: dict[str, Sequence[float]], shares: dict[int, Sequence[float]]) -> Figure:
    """Return a figure of the attempts praised at first, and of how many have German order.

    Args:
        advantages: by kind of attempt, the mean advantage before the first step, of all seeds.
        shares: by step, the share of all attempts with German order, of all seeds.
    """
    steps, lines = list(shares), list(zip(*shares.values(), strict=True))
    most = sum(line[-1] > 0.5 for line in lines)
    praised = [f"{kind} {span(values)}" for kind, values in advantages.items()]
    alt = (
        f"Left, mean advantage before the first step: {'; '.join(praised)}. Right, the share of "
        f"attempts in German order over {steps[-1]} steps, a line for each of {len(lines)} seeds: "
        f"all start between {min(shares[0]):.2f} and {max(shares[0]):.2f} and part; {most} end "
        "above a half."
    )
    title = f"Two kinds are praised; German order wins in {most} of {len(lines)} seeds"
    picture, (left, right) = figure(title, alt, 8.4, 2.9, columns=2)
    picture.subplots_adjust(0.17, wspace=0.3)
    for row, values in enumerate(advantages.values()):
        _seeds(left, row, values, COLORS[2] if min(values) > 0 else COLORS[1])
    _name_rows(left, list(advantages))
    left.axvline(0, color="0.5", linewidth=0.8)
    left.set(xlabel="mean advantage before the first step", xlim=(-1, 1))
    for line in lines:
        color = COLORS[0] if line[-1] > 0.5 else COLORS[1]
        right.plot(steps, line, "o-", markersize=3.5, linewidth=1.1, color=color)
    for height, color, name in (
        (0.72, COLORS[0], "most German"),
        (0.56, COLORS[1], "most English"),
    ):
        right.text(20, height, f"{name} at the end", color=color, ha="right", fontsize=8.5)
    right.axhline(0.5, color="0.5", linewidth=0.8)
    right.set(xlabel="step", ylabel="attempts in German order", ylim=(-0.03, 1.03))
    return picture


def distances(texts: Sequence[str], looks: Sequence[Sequence[Sequence[tuple]]]) -> Figure:
    """Return a figure of sums with their work, and from how far back each digit is read.

    Args:
        texts: prompts with their answers.
        looks: of each, as `additions.looks`.
    """
    numbers = [
        [[look[2] for look in digits] for digits in zip(*each, strict=True)] for each in looks
    ]
    parts = [
        f"{text}: the first number's digits from {', '.join(map(str, first))} back, the second's "
        f"from {', '.join(map(str, second))}"
        for text, (first, second) in zip(texts, numbers, strict=True)
    ]
    title = "One digit more: only the first number's digits stand further back"
    picture = Figure(title, f"{'; '.join(parts)}.", 8.4, 3.8)
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
        label = f"the {number} number's digits,\nand how far back they stand"
        panels[0].text(len(texts[0]) - 6.5, y, label, color=color, va="center", fontsize=9)
    picture.subplots_adjust(0.02, 0.02, 0.98, 0.9, hspace=0.05)
    return picture


def _arc(axes: Axes, look: tuple[int, int, int], up: int, color: str) -> None:
    """Draw an arc from the place that writes to the digit it reads, with the distance on it."""
    writes, reads, apart = look
    height, steps = 0.9 + 0.135 * apart, [i / 40 for i in range(41)]
    across = [writes + (reads - writes) * step for step in steps]
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
    W, A, B = (matrix.detach() for matrix in (W[rows][:, columns], A[:, columns], B[rows]))
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
