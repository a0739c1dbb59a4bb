"""What a model would say after each of its steps: rows of words, darker if likelier."""

from collections.abc import Mapping, Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.plots import COLORS, SEQUENTIAL, Figure, figure
from transformer_lesson.files import printable

DARK = 0.6  # letters are white from this probability up

Words = Mapping[str, float]
"""Words with their probabilities, likeliest first."""


def word_stages(title: str, stages: Mapping[str, Mapping[str, float]]) -> Figure:
    """Return a drawing with a row of the likeliest words for each step, likeliest first.

    Args:
        title: the claim that the figure supports.
        stages: by step name, words with their probabilities.
    """
    details = ". ".join(f"{name}: {_told(words)}" for name, words in stages.items())
    picture, axes = figure(title, f"{details}.", width=8.0, height=0.45 * len(stages) + 0.7)
    axes.set_axis_off()
    axes.set_position((0.02, 0.02, 0.96, 0.86))
    axes.set(xlim=(-1.5, max(map(len, stages.values()))), ylim=(len(stages), 0))
    for row, (name, words) in enumerate(stages.items()):
        axes.text(-0.08, row + 0.5, name, ha="right", va="center", fontsize=9, parse_math=False)
        for column, (word, share) in enumerate(words.items()):
            _word_box(axes, column, row, word, share)
    return picture


def _word_box(axes: Axes, column: int, row: int, word: str, share: float) -> None:
    box = FancyBboxPatch((column + 0.04, row + 0.1), 0.92, 0.8, "round,pad=0,rounding_size=0.06")
    box.set(facecolor=colormaps[SEQUENTIAL](share), edgecolor="#c5d2de", linewidth=0.8)
    axes.add_patch(box)
    axes.text(
        column + 0.5,
        row + 0.5,
        f"{printable(word)}  {share:.2f}",
        ha="center",
        va="center",
        fontsize=9,
        color="white" if share > DARK else "black",
        parse_math=False,
    )


def steps_beside(
    title: str, steps: Sequence[str], read: Mapping[str, Sequence[tuple[Words, str]]]
) -> Figure:
    """Return a drawing with a row for each step and a column for each word read.

    Each cell has the likeliest words, with bars on one scale, and a note.

    Args:
        title: the claim that the figure supports.
        steps: the names of the rows.
        read: by the word read, for each step the likeliest words and the note.
    """
    details = [
        f"{word}, {step}: {_told(words)}".replace("\n", " ") + (f" ({note})" if note else "")
        for word, cells in read.items()
        for step, (words, note) in zip(steps, cells, strict=True)
    ]
    height = 1.1 + 1.05 * len(steps)
    picture, _ = figure(title, f"{'. '.join(details)}.", 1.6 + 2.2 * len(read), height)
    picture.clear()
    picture.suptitle(title, fontsize=11, parse_math=False)
    every = picture.subplots(len(steps), len(read), squeeze=False, sharex=True)
    left, top = 1.45 / (1.6 + 2.2 * len(read)), 1 - 0.7 / height
    picture.subplots_adjust(left, 0.5 / height, 0.98, top, wspace=0.12, hspace=0.3)
    for column, (word, cells) in enumerate(read.items()):
        every[0, column].set_title(printable(word), fontsize=10, parse_math=False)
        every[-1, column].set_xlabel("probability", fontsize=9)
        for axes, (words, note) in zip(every[:, column], cells, strict=True):
            _word_bars(axes, words, note)
    for axes, step in zip(every[:, 0], steps, strict=True):
        name = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 9, "parse_math": False}
        axes.set_ylabel(printable(step, keep="\n"), labelpad=8, **name)
    return picture


def _word_bars(axes: Axes, words: Words, note: str) -> None:
    """Draw words one below the other, each beside its bar, and a note in the corner."""
    axes.barh(range(len(words)), list(words.values()), color=COLORS[0], height=0.62)
    axes.set(xlim=(0, 1.45), ylim=(len(words) + 0.4, -0.6), yticks=[])  # room for the note
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"], fontsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for row, (word, share) in enumerate(words.items()):
        place = {"va": "center", "fontsize": 9, "parse_math": False}
        axes.text(share + 0.03, row, f"{printable(word)}  {share:.2f}", **place)
    corner = {"transform": axes.transAxes, "ha": "right", "va": "bottom", "fontsize": 9}
    axes.text(1, 0.02, printable(note, keep="\n"), parse_math=False, color="#333333", **corner)


def _told(words: Mapping[str, float]) -> str:
    return ", ".join(f"{printable(word)} {share:.2f}" for word, share in words.items())
