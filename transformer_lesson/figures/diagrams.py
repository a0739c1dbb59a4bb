"""Drawings of ideas, made of boxes, words and arrows. Each says its claim and has a text
alternative, as every figure of `plots`."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.files import printable

SOURCE, TARGET, GUESS = COLORS[0], COLORS[2], COLORS[1]
PAPER = 0.12  # how much of a box's color its inside has


def next_token_questions(source: Sequence[str], target: Sequence[str]) -> Figure:
    """Return a drawing of what a translator is trained on: the target, and the target shifted.

    Args:
        source: the words that the encoder reads.
        target: the translation, without marks for its beginning and its end.
    """
    given, wanted = ["<bos>", *target], [*target, "<eos>"]
    questions = "; ".join(f"after {a} comes {b}" for a, b in zip(given, wanted, strict=True))
    made, axes = figure(
        f"{len(given)} positions, {len(given)} questions: what comes next?",
        f"The encoder reads {' '.join(source)}, and all of it is handed to each position of the "
        f"decoder. The decoder reads {' '.join(given)} and is to answer, one position further on: "
        f"{questions}.",
        width=8.0,
        height=3.6,
    )
    _empty(axes, 2 * len(given) + 3, 7)
    for i, word in enumerate(source):
        _box(axes, 2 * i + 3, 0.2, word, SOURCE)
    for i, (one, other) in enumerate(zip(given, wanted, strict=True)):
        _box(axes, 2 * i + 3, 2.6, one, TARGET)
        _box(axes, 2 * i + 3, 5.4, other, GUESS)
        _arrow(axes, (2 * i + 3.9, 3.7), (2 * i + 3.9, 5.3))
        _arrow(axes, (2 * i + 3.9, 1.9), (2 * i + 3.9, 2.5))  # the whole source, to every position
    line = {"color": "#566372", "linewidth": 1.2}
    axes.plot([3.9, 2 * len(given) + 1.9], [1.9, 1.9], **line)
    axes.plot([2.9 + len(source)] * 2, [1.35, 1.9], **line)
    for y, words in ((0.75, "source"), (3.15, "target so far"), (5.95, "to guess")):
        axes.text(2.6, y, words, ha="right", va="center", fontsize=10)
    return made


def distributions(title: str, shares: Mapping[str, Mapping[str, float]], even: float) -> Figure:
    """Return bars of the likeliest words of several models, side by side and of one scale.

    Args:
        title: the claim that the figure supports.
        shares: by model, its likeliest words with their probabilities, largest first.
        even: the probability that each word would have if all had the same.
    """
    told = [f"{name}: {_large(words)}" for name, words in shares.items()]
    alt = f"Bars of the likeliest words. {'; '.join(told)}. An even guess gives each {even:.4f}."
    made, panels = figure(title, alt, width=8.0, height=2.8, columns=len(shares))
    for axes, (name, words) in zip(panels, shares.items(), strict=True):
        places = range(len(words))
        axes.barh(places, words.values(), color=COLORS[0], height=0.7)
        axes.set_yticks(places, [printable(word) for word in words], parse_math=False)
        axes.set(xlim=(0, 1), xlabel="probability", title=name)
        axes.invert_yaxis()
        for y, share in enumerate(words.values()):
            inside = share > 0.8
            x, side = (share - 0.02, "right") if inside else (share + 0.02, "left")
            color = "white" if inside else "black"
            axes.text(x, y, f"{share:.3f}", ha=side, va="center", fontsize=9, color=color)
    return made


def _large(words: Mapping[str, float]) -> str:
    large = [f"{printable(word)} {share:.2f}" for word, share in words.items() if share >= 0.05]
    return ", ".join(large) if large else "no word has 0.05 or more"


def _empty(axes: Axes, width: int, height: int) -> None:
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    axes.set_position((0.02, 0.02, 0.96, 0.84))


def _box(axes: Axes, x: int, y: float, word: str, color: str) -> None:
    inside = FancyBboxPatch(
        (x, y), 1.8, 1.1, "round,pad=0,rounding_size=0.15", facecolor=color, alpha=PAPER
    )
    edge = FancyBboxPatch(
        (x, y), 1.8, 1.1, "round,pad=0,rounding_size=0.15", facecolor="none", edgecolor=color
    )
    axes.add_patch(inside)
    axes.add_patch(edge)
    axes.text(x + 0.9, y + 0.52, printable(word), ha="center", va="center", parse_math=False)


def _arrow(axes: Axes, start: tuple[int | float, float], end: tuple[int | float, float]) -> None:
    arrow = {"arrowstyle": "-|>", "color": "#566372", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow)
