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
LOOKS = (("--", COLORS[3]), ("-", "0.75"), ("-", COLORS[4]), ("--", "0.5"), (":", "0.25"))
WAY_COLORS = COLORS[0], COLORS[1]  # of comparisons, of imitation


def comparisons(
    runs: Sequence[dict], ways: dict[str, tuple[Sequence[float], Sequence[float]]]
) -> Figure:
    """Return what three runs of DPO still get right step by step, and what is left by each way.

    Args:
        runs: as `taste` stored them, a run for each seed.
        ways: by name, the shares of *wenn* and of the worst other kind, of all seeds.
    """
    steps, looks = [int(step) for step in runs[0]["dpo"]], [[*run["dpo"].values()] for run in runs]
    told = [
        f"{name}: wenn {span(wenn)}, the worst other kind {span(rest)}"
        for name, (wenn, rest) in ways.items()
    ]
    alt = (
        "Left, over 60 steps of DPO: pairs won rise from 0 to 1; sentences with wenn fall from 1 "
        "to 0 between steps 20 and 40; the other kinds stay above 0.9. Right, the shares that are "
        f"right after each way: {'; '.join(told)}."
    )
    title = "Every way loses the sentences with wenn; high rates harm other kinds, too"
    picture, (left, right) = figure(title, alt, 9.0, 3.2, columns=2)
    picture.subplots_adjust(wspace=0.55)
    kinds = {kind: lambda one, kind=kind: one["others"][kind] for kind in looks[0][0]["others"]}
    lines = {"pairs won": lambda one: one["wins"]} | kinds
    for (name, value), (dashes, color) in zip(lines.items(), LOOKS, strict=True):
        for i, run in enumerate(looks):
            shares, label = [value(one) for one in run], name if i == 0 else None
            left.plot(steps, shares, dashes, color=color, linewidth=1.2, label=label)
    left.set(xlabel="step of DPO", ylabel="share won, or right", ylim=(-0.03, 1.03))
    left.legend(fontsize=8, loc="center right")
    for row, (wenn, rest) in enumerate(ways.values()):
        _seeds(right, row, wenn, LOOKS[2][1])
        _seeds(right, row, rest, "0.4")
    for name, color in (("wenn", LOOKS[2][1]), ("the worst other kind", "0.4")):
        right.scatter([], [], 26, color, label=name)
    _name_rows(right, list(ways))
    _legend_above(right)
    right.set(xlabel="right, of 100 of each kind", xlim=(-0.04, 1.04))
    return picture


def sharpened(ks: Sequence[int], curves: Mapping[str, Sequence[float]]) -> Figure:
    """Return pass@k over k, a line for each of three models, the control dashed.

    Args:
        ks: numbers of draws.
        curves: pass@k by model: after rewards, before, and before without smoothing.
    """
    title = "What 64 draws could do before, one draw does now"
    told = [f"{name}: from {line[0]:.2f} up to {line[-1]:.2f}" for name, line in curves.items()]
    alt = f"pass@k over k from {ks[0]} to {ks[-1]}. {'; '.join(told)}."
    picture, axes = figure(title, alt)
    for i, ((name, shares), dashes) in enumerate(
        zip(curves.items(), ("-", "-", "--"), strict=True)
    ):
        axes.plot(ks, shares, f"o{dashes}", color=COLORS[min(i, 1)], label=name, markersize=4)
    axes.set(xlabel="k, draws (log)", ylabel="pass@k", xscale="log", ylim=(0, 1.03))
    axes.set_xticks(ks, ks)
    axes.minorticks_off()
    axes.legend()
    return picture


def waits(curves: Sequence[Sequence[float]]) -> Figure:
    """Return the reward of runs that begin where nothing is right, the mean of ten steps each.

    Args:
        curves: the mean reward of each step, a run for each seed.
    """
    means = [[sum(run[i : i + 10]) / 10 for i in range(0, len(run), 10)] for run in curves]
    told = [
        f"seed {seed}: {mean[0]:.2f} in the first ten steps, {mean[-1]:.2f} in the last"
        for seed, mean in enumerate(means)
    ]
    alt = f"Mean reward of each step, ten at a time. {'; '.join(told)}."
    picture, axes = figure(
        "All three take off, after a hundred steps with little reward", alt, 6.0, 2.6
    )
    for seed, (run, color) in enumerate(zip(means, COLORS, strict=False)):
        steps = [10 * i + 5 for i in range(len(run))]
        axes.plot(steps, run, "o-", color=color, markersize=3.5, label=f"seed {seed}")
    axes.set(
        xlabel="step", ylabel="mean reward", xlim=(0, max(map(len, curves))), ylim=(-0.03, 1.03)
    )
    axes.legend(fontsize=8)
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


def side_by_side(
    title: str,
    rows: dict[str, str],
    panels: dict[str, Sequence[Sequence[float]]],
    most: Sequence[float] | None = None,
    width: float = 8.4,
) -> Figure:
    """Return rows of dots, one for each seed, in panels that share their rows.

    Args:
        title: the claim that the figure supports.
        rows: a color for each row's name.
        panels: by what is measured, for each row the values of all seeds.
        most: where each panel's scale ends; 1 by default.
    """
    told = [
        f"{name}: " + ", ".join(f"{what} {span(values[i])}" for what, values in panels.items())
        for i, name in enumerate(rows)
    ]
    height = 0.95 + 0.26 * len(rows)
    alt = f"Dots, one for each of three seeds. {'; '.join(told)}."
    picture, drawn = figure(title, alt, width, height, columns=len(panels))
    longest = max(map(len, rows)) * 0.064 + 0.2  # inches
    picture.subplots_adjust(longest / width, wspace=0.12)
    for i, (axes, (what, values)) in enumerate(zip(drawn, panels.items(), strict=True)):
        for row, (shares, color) in enumerate(zip(values, rows.values(), strict=True)):
            _seeds(axes, row, shares, color)
        axes.set(xlabel=what, xlim=(-0.04, 1.04))
        if most:
            axes.set_xlim(-0.04 * most[i], 1.04 * most[i])
            axes.set_xticks([0, most[i] / 2, most[i]])
        _name_rows(axes, list(rows) if i == 0 else [""] * len(rows))
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


def _legend_above(axes: Axes) -> None:
    """Write the legend in a line between the title and the axes."""
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 0.97), ncols=2, frameon=False)


def written(
    kinds: dict[str, tuple[Sequence[float], Sequence[float]]], ways: dict[str, Sequence[float]]
) -> Figure:
    """Return what is written before and after DPO, and each way's share of the chosen sentence.

    Args:
        kinds: by name, the shares of all seeds before and after.
        ways: by name, the shares of all seeds.
    """
    title = "The rejected sentence gives way to third ones; fast imitation writes the chosen one"
    told = [f"{name}: {span(first)}, then {span(last)}" for name, (first, last) in kinds.items()]
    shares = [f"{name} {span(values)}" for name, values in ways.items()]
    alt = (
        f"Left, what is written before and after DPO, three seeds. {'; '.join(told)}. Right, how "
        f"often the chosen sentence is written after each way: {'; '.join(shares)}."
    )
    picture, (left, right) = figure(title, alt, 9.0, 2.9, columns=2)
    picture.subplots_adjust(0.135, wspace=0.62)
    for row, (first, last) in enumerate(kinds.values()):
        _seeds(left, row - 0.14, first, "0.55", hollow=True)
        _seeds(left, row + 0.14, last, COLORS[0])
    for name, color, hollow in (("before", "0.55", True), ("after", COLORS[0], False)):
        inside = "white" if hollow else color
        left.scatter([], [], 26, inside, edgecolors=color, label=f"{name} DPO")
    _legend_above(left)
    for row, (name, values) in enumerate(ways.items()):
        _seeds(right, row, values, WAY_COLORS["imitation" in name])
    _name_rows(left, list(kinds))
    _name_rows(right, list(ways))
    left.set(xlabel="share of 150 sentences", xlim=(-0.02, 0.8))
    right.set(xlabel="share that is the chosen one", xlim=(-0.04, 1.04))
    return picture


def competing(advantages: dict[str, Sequence[float]], shares: dict[int, Sequence[float]]) -> Figure:
    """Return which attempts are praised at first, and which kind of the praised ones wins.

    Args:
        advantages: by kind of attempt, the mean advantage before the first step, of all seeds.
        shares: by step, the share of German order among the praised attempts, of all seeds.
    """
    steps, lines = list(shares), list(zip(*shares.values(), strict=True))
    kept = sum((line[0] > 0.5) == (line[-1] > 0.5) for line in lines)
    praised = [f"{kind} {span(values)}" for kind, values in advantages.items()]
    title = (
        f"Two kinds are praised; the one drawn more often at first wins in {kept} of {len(lines)}"
    )
    alt = (
        f"Left, mean advantage before the first step: {'; '.join(praised)}. Right, the share of "
        f"German order among the attempts of the two praised kinds, over {steps[-1]} steps, a line "
        f"for each of {len(lines)} seeds: all start between {min(shares[0]):.2f} and "
        f"{max(shares[0]):.2f} and part; "
        f"{sum(line[-1] > 0.5 for line in lines)} end above a half."
    )
    picture, (left, right) = figure(title, alt, 8.4, 2.9, columns=2)
    picture.subplots_adjust(0.17, wspace=0.3)
    for row, values in enumerate(advantages.values()):
        _seeds(left, row, values, COLORS[2] if min(values) > 0 else COLORS[1])
    _name_rows(left, list(advantages))
    left.axvline(0, color="0.5", linewidth=0.8)
    left.set(xlabel="mean advantage before the first step", xlim=(-1, 1))
    for line in lines:
        stays = (line[0] > 0.5) == (line[-1] > 0.5)
        right.plot(
            steps,
            line,
            "o-" if stays else "o--",
            markersize=3.5,
            linewidth=1.1,
            color=COLORS[0] if stays else COLORS[1],
        )
    right.plot([], [], "-", color=COLORS[0], label="same kind ahead at both ends")
    right.plot([], [], "--", color=COLORS[1], label="overtaken")
    right.axhline(0.5, color="0.5", linewidth=0.8)
    _legend_above(right)
    right.set(xlabel="step", ylabel="share of German order", ylim=(-0.03, 1.03))
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
