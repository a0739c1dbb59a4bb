"""Drawings of ideas, made of boxes, words and arrows. Each states its claim and has a text
alternative, like every figure of `plots`."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.plots import COLORS, Figure, figure
from transformer_lesson.files import printable

SOURCE, TARGET, GUESS = COLORS[0], COLORS[2], COLORS[1]
PAPER = 0.12  # opacity of a box's fill


def next_token_questions(
    source: Sequence[str], target: Sequence[str], marked: int | None = None
) -> Figure:
    """Return a drawing of what a translator is trained on: the target, and the target shifted.

    Args:
        source: the words that the encoder reads.
        target: the translation, without <bos> and <eos>.
        marked: the position whose question is emphasized, with its inputs; none by default.
    """
    read, wanted = ["<bos>", *target], [*target, "<eos>"]
    questions = "; ".join(f"after {a} comes {b}" for a, b in zip(read, wanted, strict=True))
    picture, axes = figure(
        f"One sentence, {len(read)} guesses at once: each position has to name the next word",
        f"The encoder reads {' '.join(source)}, and all of it is handed to each position of the "
        f"decoder. The decoder reads {' '.join(read)} and is to answer, one position further on: "
        f"{questions}."
        + ("" if marked is None else f" The position of {read[marked]} is highlighted."),
        width=8.0,
        height=3.6,
    )
    _empty(axes, 2 * len(read) + 3, 7)
    for i, word in enumerate(source):
        _box(axes, 2 * i + 3, 0.2, word, SOURCE)
    for i, (word_read, word_wanted) in enumerate(zip(read, wanted, strict=True)):
        _box(axes, 2 * i + 3, 2.6, word_read, TARGET, marked is not None and i <= marked)
        _box(axes, 2 * i + 3, 5.4, word_wanted, GUESS, i == marked)
        _arrow(axes, (2 * i + 3.9, 3.7), (2 * i + 3.9, 5.3))
        _arrow(axes, (2 * i + 3.9, 1.9), (2 * i + 3.9, 2.5))  # the whole source, to every position
    line = {"color": "#566372", "linewidth": 1.2}
    axes.plot([3.9, 2 * len(read) + 1.9], [1.9, 1.9], **line)
    axes.plot([2.9 + len(source)] * 2, [1.35, 1.9], **line)
    if marked is not None:
        axes.plot([3, 2 * marked + 4.8], [4.05] * 2, color=TARGET, linewidth=2)
        question = (
            f"given the source and the marked words, what comes after “{printable(read[marked])}”?"
        )
        axes.text(2 * marked + 3.9, 6.75, question, ha="center", fontsize=9, color=GUESS)
    for y, words in ((0.75, "source"), (3.15, "target so far"), (5.95, "to guess")):
        axes.text(2.6, y, words, ha="right", va="center", fontsize=10)
    return picture


def distributions(title: str, shares: Mapping[str, Mapping[str, float]], even: float) -> Figure:
    """Return a figure of several models' likeliest words, as bars.

    The scale ends at 1, or at 0.01 for a model whose words all have less. There, a dashed line
    marks the even share.

    Args:
        title: the claim that the figure supports.
        shares: by model, its likeliest words with their probabilities, largest first.
        even: the probability that each word would have if all had the same.
    """
    details = [f"{name}: {_large(words)}" for name, words in shares.items()]
    alt = f"Bars of the likeliest words; an even share is {even:.4f}. {'; '.join(details)}."
    picture, panels = figure(title, alt, width=8.0, height=3.1, columns=len(shares))
    for axes, (name, words) in zip(panels, shares.items(), strict=True):
        places = range(len(words))
        scale, color = (0.01, COLORS[1]) if max(words.values()) < 0.01 else (1, COLORS[0])
        axes.barh(places, list(words.values()), color=color, height=0.7)
        axes.set_yticks(places, [printable(word) for word in words], parse_math=False)
        axes.set(xlim=(0, 1.15 * scale), xlabel="probability")
        axes.set_title(printable(name), fontsize=10, loc="left")
        axes.invert_yaxis()
        for y, share in enumerate(words.values()):
            axes.text(share + 0.02 * scale, y, f"{share:.4f}", va="center", fontsize=9)
        if scale < 1:
            axes.set_xlabel("probability (mind the scale)", color=color)
            axes.set_xticks((0, scale / 2, scale))
            axes.axvline(even, color="#14213d", linestyle="--", linewidth=1)
            axes.set_title("dashed: an even share", fontsize=9, loc="right")
    picture.subplots_adjust(0.13, 0.16, 0.98, 0.84, wspace=0.45)
    return picture


def _large(words: Mapping[str, float]) -> str:
    large = [f"{printable(word)} {share:.2f}" for word, share in words.items() if share >= 0.05]
    return ", ".join(large) if large else "no word has 0.05 or more"


def _empty(axes: Axes, width: int, height: int) -> None:
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    axes.set_position((0.02, 0.02, 0.96, 0.84))


def _box(axes: Axes, x: int, y: float, word: str, color: str, strong: bool = False) -> None:
    form = ((x, y), 1.8, 1.1, "round,pad=0,rounding_size=0.15")
    inside = FancyBboxPatch(*form, facecolor=color, alpha=3 * PAPER if strong else PAPER)
    look = {"edgecolor": color, "linewidth": 2.5 if strong else 1}
    edge = FancyBboxPatch(*form, facecolor="none", **look)
    axes.add_patch(inside)
    axes.add_patch(edge)
    axes.text(x + 0.9, y + 0.52, printable(word), ha="center", va="center", parse_math=False)


def _arrow(axes: Axes, start: tuple[int | float, float], end: tuple[int | float, float]) -> None:
    arrow = {"arrowstyle": "-|>", "color": "#566372", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow)
