"""Drawings of generation: a tree of words, a race, what filters keep, a cache, draft tokens."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.files import printable

KEPT, GONE, PALE = COLORS[0], "#8a949e", "#cfe0ee"

Words = Mapping[str, float]


def word_tree(title: str, tree: Mapping[str, Words], root: str, kept: Sequence[str]) -> Figure:
    """Return a tree of two words, with the branches that a search keeps in blue.

    Args:
        title: the claim that the figure supports.
        tree: by word, the words that may follow it with their probabilities.
        root: the first word.
        kept: the words that the search keeps, all different.
    """
    texts = {(a, b): p * q for a, p in tree[root].items() for b, q in tree[a].items()}
    details = ", ".join(f"{a} {b} {p:.2f}" for (a, b), p in texts.items())
    alt = f"A tree of two words with the probability of each text: {details}. "
    alt += f"Kept: {', '.join(kept)}."
    picture, axes = figure(title, alt, width=7.5, height=3.2)
    axes.set(xlim=(-0.35, 3.4), ylim=(len(texts) - 0.4, -0.6))
    axes.set_axis_off()
    axes.set_position((0.01, 0.01, 0.98, 0.88))
    ends = {text: float(y) for y, text in enumerate(texts)}
    middle = {a: sum(ys) / len(ys) for a in tree[root] if (ys := _heights(ends, a))}
    axes.text(0, sum(middle.values()) / len(middle), root, ha="right", va="center", fontsize=10)
    for a, p in tree[root].items():
        _branch(axes, (0.04, sum(middle.values()) / len(middle)), (1.0, middle[a]), a in kept)
        _leaf(axes, (1.03, middle[a]), f"{a}  {p:.2f}", a in kept)
    for (a, b), p in texts.items():
        _branch(axes, (1.5, middle[a]), (2.4, ends[a, b]), b in kept)
        _leaf(axes, (2.43, ends[a, b]), f"{a} {b}  {p:.2f}", b in kept)
    return picture


def _heights(ends: Mapping[tuple[str, str], float], first: str) -> list[float]:
    return [y for (a, _), y in ends.items() if a == first]


def _branch(axes: Axes, start: tuple[float, float], end: tuple[float, float], kept: bool) -> None:
    style = {"color": KEPT, "lw": 2.2} if kept else {"color": GONE, "lw": 1.0, "ls": ":"}
    axes.plot(*zip(start, end, strict=True), **style)


def _leaf(axes: Axes, place: tuple[float, float], text: str, kept: bool) -> None:
    axes.text(
        *place,
        printable(text),
        va="center",
        fontsize=10,
        color=KEPT if kept else GONE,
        parse_math=False,
    )


def race(title: str, hypotheses: Mapping[str, Sequence[tuple[str, float]]]) -> Figure:
    """Return a line for each of two hypotheses: its log-probability, word by word.

    Args:
        title: the claim that the figure supports.
        hypotheses: by name, each one's words from where they diverge, with the log-probability of
            everything up to and including that word.
    """
    text = "; ".join(f"{name}: {_run(words)}" for name, words in hypotheses.items())
    picture, axes = figure(title, f"Log-probabilities word by word. {text}.", width=8.5, height=3.4)
    for (name, words), color in zip(hypotheses.items(), (COLORS[1], COLORS[0]), strict=True):
        values = [value for _, value in words]
        axes.plot(range(1, len(words) + 1), values, "o-", color=color, ms=4)
        for x, (word, value) in enumerate(words, start=1):
            above = value >= _other(hypotheses, name, x - 1)
            axes.annotate(
                printable(word),
                (x, value),
                (0, 7 if above else -15),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                color=color,
                parse_math=False,
            )
        axes.text(len(words) + 0.45, values[-1], name, color=color, va="center", fontsize=9)
    longest = max(map(len, hypotheses.values()))
    axes.set(xlabel="words since they parted", ylabel="log P so far", xlim=(0.5, longest + 2.2))
    axes.set_xticks(range(1, longest + 1))
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.2 * (high - low), high + 0.12 * (high - low))
    picture.subplots_adjust(bottom=0.17)
    return picture


def _other(hypotheses: Mapping[str, Sequence[tuple[str, float]]], name: str, x: int) -> float:
    """Return the other line's value at x, or at its end."""
    words = next(words for other, words in hypotheses.items() if other != name)
    return words[min(x, len(words) - 1)][1]


def _run(words: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{printable(word)} {value:.1f}" for word, value in words)


def kept_words(title: str, panels: Mapping[str, Words], kept: Mapping[str, int], k: int) -> Figure:
    """Return bars of words, likeliest first: those top-p keeps in blue, a bracket over each choice.

    Args:
        title: the claim that the figure supports.
        panels: by preceding text, words with their probabilities, largest first.
        kept: how many of each top-p keeps.
        k: how many top-k keeps.
    """
    details = ". ".join(
        f"After “{name}”, top-p keeps {kept[name]} of {len(words)} words, top-k {k}"
        for name, words in panels.items()
    )
    picture, all_axes = figure(title, f"{details}.", width=9.0, height=2.8, columns=len(panels))
    highest = max(max(words.values()) for words in panels.values())  # one scale for all
    for axes, (name, words) in zip(all_axes, panels.items(), strict=True):
        n = kept[name]
        colors = [KEPT if i < n else PALE for i in range(len(words))]
        axes.bar(range(len(words)), words.values(), color=colors, width=0.8)
        axes.set(xlabel=f"the {len(words)} words after “{name}”, likeliest first", xticks=[])
        axes.set(ylim=(0, 1.5 * highest))
        for y, filter_, count, color in ((1.07, "k", k, COLORS[1]), (1.27, "p", n, KEPT)):
            axes.plot([-0.4, count - 0.6], [y * highest] * 2, color=color, lw=2)
            text = f"top-{filter_} keeps {count}"
            axes.text(-0.4, (y + 0.04) * highest, text, color=color, fontsize=9)
    all_axes[0].set_ylabel("probability")
    picture.subplots_adjust(bottom=0.16, wspace=0.22)
    return picture


def cache_steps(title: str, words: Sequence[str]) -> Figure:
    """Return two triangles: the keys and values each step computes, without and with a cache.

    Args:
        title: the claim that the figure supports.
        words: the tokens read, in order.
    """
    n = len(words)
    alt = (
        f"Two triangles, a row for each of {n} steps, a column for each token. Without a cache all "
        f"{n * (n + 1) // 2} entries are computed; with one the {n} on the diagonal, and those "
        "left of it are kept."
    )
    picture, panels = figure(title, alt, width=9.0, height=3.4, columns=2)
    for axes, cached in zip(panels, (False, True), strict=True):
        for step in range(n):
            for token in range(step + 1):
                new = token == step or not cached
                color = KEPT if new else PALE
                axes.add_patch(Rectangle((token + 0.05, step + 0.05), 0.9, 0.9, color=color))
        axes.set(xlim=(0, n), ylim=(n, 0), ylabel="step")
        axes.set_title(f"{'with' if cached else 'without'} a cache", fontsize=10)
        axes.set_xticks([i + 0.5 for i in range(n)], [printable(word) for word in words])
        axes.set_yticks([i + 0.5 for i in range(n)], range(1, n + 1))
        axes.tick_params(axis="x", rotation=60, labelsize=9, length=0)
        axes.tick_params(axis="y", length=0)
        axes.spines[:].set_visible(False)
        axes.text(n, 0.6, "computed", ha="right", va="center", color=KEPT, fontsize=9)
        if cached:
            axes.text(n, 1.5, "kept", ha="right", va="center", color="#7fa3c0", fontsize=9)
    picture.subplots_adjust(bottom=0.27, wspace=0.2)
    return picture


def accepted_and_missing(
    title: str, words: Sequence[str], p: torch.Tensor, q: torch.Tensor
) -> Figure:
    """Return a bar for each word: the accepted, the rejected and the replacing probability.

    Args:
        title: the claim that the figure supports.
        words: tokens.
        p, q: their probabilities in the large model and in the draft, shape (words,).
    """
    details = ", ".join(
        f"{printable(word)} {a:.2f} and {b:.2f}"
        for word, a, b in zip(words, p.tolist(), q.tolist(), strict=True)
    )
    picture, axes = figure(title, f"Large model and draft: {details}.", width=7.5, height=3.2)
    both = torch.minimum(p, q).tolist()
    axes.bar(words, both, color=KEPT, width=0.6, label="min(p, q): guessed and accepted")
    axes.bar(
        words,
        (q - p).clamp(min=0).tolist(),
        bottom=both,
        color="white",
        edgecolor=COLORS[1],
        hatch="////",
        width=0.6,
        label="q above p: guessed and refused",
    )
    axes.bar(
        words,
        (p - q).clamp(min=0).tolist(),
        bottom=both,
        color=COLORS[5],
        width=0.6,
        label="p above q: written in the place of what was refused",
    )
    axes.set(ylabel="probability", ylim=(0, 1.5 * max(p.max().item(), q.max().item())))
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return picture
