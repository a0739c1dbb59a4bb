"""Figures of language models' losses: the limits of counting, overtaking, which size is best."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from transformer_lesson.figures.plots import COLORS, Figure, figure, name_lines
from transformer_lesson.files import printable

STYLES = ("-", "--", "-.", ":")
RIGHT_OR_WRONG = ListedColormap([COLORS[1], "#a9cfe8"])
RIGHT = {1.0: "right", 0.0: "impossible"}
BITS = "bits per character"


def counting(
    title: str, recited: Sequence[float], unseen: Sequence[float], new: Sequence[float]
) -> Figure:
    """Return a figure of the loss of n-gram tables, beside how often their context is new.

    Args:
        title: the claim that the figure supports.
        recited, unseen: bits per character on the counted text and on other text, for pieces of
            1, 2, 3, ... characters.
        new: for each length, the share of contexts in the other text that were never counted.
    """
    n = np.arange(1, len(unseen) + 1)
    best = int(np.argmin(unseen))
    details = [
        f"n = {i}: {a:.2f} on counted text, {b:.2f} on other text, {share:.0%} of contexts new"
        for i, a, b, share in zip(n, recited, unseen, new, strict=True)
    ]
    picture, (left, right) = figure(title, f"{'. '.join(details)}.", 9.0, 3.3, columns=2)
    picture.subplots_adjust(right=0.97, wspace=0.5)
    left.fill_between(n, recited, unseen, color=COLORS[1], alpha=0.12)
    for values, name, i in ((recited, "counted text", 0), (unseen, "other text", 1)):
        left.plot(n, values, STYLES[i] + "o", ms=4, color=COLORS[i], label=name)
    left.annotate(f"best: {unseen[best]:.2f}", (n[best], unseen[best]), (-4, 12), ha="left",
                  textcoords="offset points", fontsize=9, color=COLORS[1])  # fmt: skip
    left.set(xlabel="n (a context of n - 1 characters)", ylabel=BITS, xticks=n, ylim=(0, None))
    name_lines(left)
    right.bar(n, new, color=COLORS[1], width=0.6)
    for i, share in zip(n, new, strict=True):
        right.text(i, share + 0.02, f"{share:.0%}", ha="center", fontsize=9)
    top = 1.2 * max(max(new), 0.1)
    right.set(xlabel="n (a context of n - 1 characters)", xticks=n, ylim=(0, top), yticks=[])
    right.set_ylabel("contexts of other text\nthat were never counted")
    return picture


def overtaking(title: str, reached: Mapping[int, float], levels: Mapping[str, float]) -> Figure:
    """Return a figure of a run's loss over its steps, and where it gets below each level.

    Args:
        title: the claim that the figure supports.
        reached: by step, in bits per character.
        levels: by name, the losses of others.
    """
    steps, values = list(reached), list(reached.values())
    passed = {name: _passes(steps, values, level) for name, level in levels.items()}
    details = [f"{name}: {levels[name]:.2f}, passed {at.words if at else 'never'}"
            for name, at in passed.items()]  # fmt: skip
    alt = f"From {values[0]:.2f} bits at step {steps[0]} to {values[-1]:.2f} at step {steps[-1]}."
    picture, axes = figure(title, f"{alt} {'; '.join(map(printable, details))}.", 8.0, 3.4)
    axes.plot(steps, values, "-o", ms=4, color=COLORS[0], label="your GPT")
    for i, (name, level) in enumerate(levels.items(), start=1):
        axes.plot(steps, [level] * len(steps), STYLES[i], color=COLORS[i], label=printable(name))
        if at := passed[name]:
            axes.scatter(at.step, level, 80, facecolors="none", edgecolors=COLORS[i], linewidths=2)
            axes.annotate(at.words, (at.step, level), (8, 7), textcoords="offset points",
                          fontsize=9, color=COLORS[i])  # fmt: skip
    axes.set(xlabel="step", ylabel=BITS)
    picture.subplots_adjust(right=0.82)
    name_lines(axes)
    return picture


class _Passed(NamedTuple):
    """Where a line passes a level: a point on the line, and between which steps that was seen."""

    step: float
    words: str


def _passes(steps: Sequence[int], values: Sequence[float], level: float) -> _Passed | None:
    """Return where a falling line first passes a level."""
    for i in range(1, len(steps)):
        if values[i] <= level < values[i - 1]:
            share = (values[i - 1] - level) / (values[i - 1] - values[i])
            at = steps[i - 1] + share * (steps[i] - steps[i - 1])
            return _Passed(at, f"between steps {steps[i - 1]} and {steps[i]}")
    return None


def best_for_each(
    title: str, losses: Mapping[str, Sequence[float]], amounts: Sequence[int]
) -> Figure:
    """Return a figure of models' losses over amounts of text, a ring around each amount's best.

    Args:
        title: the claim that the figure supports.
        losses: by model, in bits per character, one for each amount.
        amounts: tokens of text, from few to many.
    """
    names = list(losses)
    best = [min(names, key=lambda name: losses[name][i]) for i in range(len(amounts))]
    details = [f"{amount:,} tokens: "
            + ", ".join(f"{name} {losses[name][i]:.2f}" for name in names) + f"; best {best[i]}"
            for i, amount in enumerate(amounts)]  # fmt: skip
    picture, axes = figure(title, f"{'. '.join(map(printable, details))}.", 8.0, 3.8)
    for k, name in enumerate(names):
        axes.plot(amounts, losses[name], f"{STYLES[k]}o", ms=5, color=COLORS[k], label=name)
    for i, amount in enumerate(amounts):
        low = losses[best[i]][i]
        axes.scatter(amount, low, 170, facecolors="none", edgecolors="black", linewidths=1.5)
        axes.annotate(f"best: {best[i]}, {low:.2f}", (amount, low), (0, -20), ha="center",
                      textcoords="offset points", fontsize=9)  # fmt: skip
    values = [value for run in losses.values() for value in run]
    room = 0.25 * (max(values) - min(values))
    axes.set(xscale="log", xlabel="tokens of training text", ylabel=f"{BITS}, unseen text")
    axes.set(ylim=(min(values) - room, max(values) + 0.3 * room))
    axes.set(xlim=(amounts[0] / 2.2, amounts[-1] * 1.6))
    axes.set_xticks(amounts, [f"{amount:,}" for amount in amounts])
    axes.minorticks_off()
    picture.subplots_adjust(right=0.84)
    name_lines(axes)
    return picture


def scaling(
    title: str,
    runs: Mapping[int, float],
    left_out: tuple[int, float],
    curves: Mapping[str, tuple[float, float, float]],
) -> Figure:
    """Return curves floor + a * n ** -b through runs of several sizes, and a run left out of them.

    Args:
        title: the claim that the figure supports.
        runs: by number of parameters, bits per character.
        left_out: parameters and bits of a run that the curves were not fitted to.
        curves: by name, floor, a and b.
    """
    size, reached = left_out
    places = np.geomspace(min(runs) / 1.2, 3 * size, 100)
    foreseen = {name: floor + a * size**-b for name, (floor, a, b) in curves.items()}
    details = [f"{n:,} parameters: {bits:.2f}" for n, bits in runs.items()]
    details += [
        f"{printable(name)} predicts {bits:.2f} for {size:,}" for name, bits in foreseen.items()
    ]
    picture, axes = figure(title, f"{'. '.join(details)}, which reached {reached:.2f}.", 8.0, 3.6)
    for i, (name, (floor, a, b)) in enumerate(curves.items()):
        axes.plot(places, floor + a * places**-b, STYLES[i], color=COLORS[i],
                  label=f"{printable(name)}\npredicts {foreseen[name]:.2f}")  # fmt: skip
    axes.scatter(list(runs), list(runs.values()), 30, color="black", zorder=3)
    axes.scatter(size, reached, 110, facecolors="none", edgecolors=COLORS[2], lw=2.5, zorder=3)
    axes.annotate(f"left out: {reached:.2f}", (size, reached), (-4, 12), fontsize=9,
                  textcoords="offset points", color=COLORS[2])  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel=f"{BITS}, unseen text")
    axes.set_xticks([20_000, 50_000, 100_000, 200_000, 500_000],
                    ["20,000", "50,000", "100,000", "200,000", "500,000"])  # fmt: skip
    axes.set_yticks([2.0, 2.2, 2.5, 3.0], ["2.0", "2.2", "2.5", "3.0"])
    axes.minorticks_off()
    picture.subplots_adjust(right=0.76)
    name_lines(axes)
    return picture


def stories_marked(title: str, marked: Mapping[str, Sequence[Sequence[bool]]]) -> Figure:
    """Return a figure of stories as rows of squares, one per sentence, mistaken ones on top.

    Args:
        title: the claim that the figure supports.
        marked: by narrator, the stories: for each sentence, whether it is right.
    """
    longest = max(len(story) for stories in marked.values() for story in stories)
    heads, details = [], []
    for name, stories in marked.items():
        n_clean, right = sum(map(all, stories)), sum(map(sum, stories)) / sum(map(len, stories))
        share = f"{n_clean} of {len(stories)} stories,\n{right:.0%} of sentences"
        heads.append(f"{printable(name)}:\n{share}")
        details.append(f"{printable(name)}: {n_clean} of {len(stories)} stories and {right:.0%} of "
                    "sentences are right")  # fmt: skip
    picture, axes = figure(title, f"{'. '.join(details)}.", 9.0, 4.4, columns=len(marked))
    for panel, head, stories in zip(np.atleast_1d(axes), heads, marked.values(), strict=True):
        squares = np.full((len(stories), longest), np.nan)
        for row, story in enumerate(sorted(stories, key=_faultless)):
            squares[row, : len(story)] = story
        panel.imshow(
            squares, cmap=RIGHT_OR_WRONG, vmin=0, vmax=1, aspect="auto", interpolation="none"
        )
        panel.set_title(head, fontsize=9, parse_math=False)
        numbers = range(1, longest + 1, 4)
        panel.set_xticks([number - 1 for number in numbers], [str(number) for number in numbers])
        panel.set(yticks=[], xlabel="sentence")
        panel.spines[:].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel("stories, by their first mistake")
    picture.subplots_adjust(left=0.05, right=0.86, bottom=0.13, top=0.76, wspace=0.15)
    squares = [Patch(color=RIGHT_OR_WRONG(share), label=name) for share, name in RIGHT.items()]
    picture.legend(handles=squares, loc="center right", frameon=False, fontsize=9)
    return picture


def _faultless(story: Sequence[bool]) -> tuple[float, int]:
    """Return how much of a story precedes its first mistake, as a sort key."""
    first = [*story, False].index(False)
    return first / len(story), len(story)
