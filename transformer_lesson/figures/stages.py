"""What a model would say after each of its steps: rows of words, darker if likelier."""

from collections.abc import Mapping

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.plots import SEQUENTIAL, Figure, figure
from transformer_lesson.files import printable

DARK = 0.6  # letters are white from this probability up


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


def _told(words: Mapping[str, float]) -> str:
    return ", ".join(f"{printable(word)} {share:.2f}" for word, share in words.items())
