"""The picture of a translation: words read, words written, and what joined them."""

from collections.abc import Sequence
from itertools import accumulate
from textwrap import wrap

from transformer_lesson.explorables.base import Rendering, drawable
from transformer_lesson.explorables.canvas import Canvas, drawn_width
from transformer_lesson.explorables.translation import Translation
from transformer_lesson.plots import COLORS

WIDTH, READS, WRITES = 940, 72, 222  # of the picture; tops of the two rows of words
Place = tuple[float, float]  # left edge and width of a box


def render_translation(
    translation: Translation, shown: int, word: int, layer: int, head: int | None
) -> Rendering:
    """Draw the sentence, what is written so far, and the attention behind one word of it.

    Args:
        translation: of a sentence.
        shown: how many of its words are drawn.
        word: the one whose attention and rivals are drawn, from 0.
        layer: from 0.
        head: from 0; `None` for the mean over the layer's heads.
    """
    tokens, known, changes, offers = translation.reading
    read = [*(drawable(f"{token:.30}") for token in tokens), "<eos>"]
    written = [drawable(f"{token:.30}") for token in translation.written]
    shown = min(shown, len(written))
    word = min(word, shown - 1)
    weights = translation.weights[layer, :, word]  # (head, source)
    weights = (weights.mean(0) if head is None else weights[head]).tolist()  # (source,)
    ranked = sorted(range(len(read)), key=lambda i: -weights[i])[:3]
    looked = [f"“{read[i]}” ({weights[i]:.2f})" for i in ranked]
    guess = "For a word that it does not know the model reads <unk>: it can only guess."
    notes = [*changes, *offers, *[guess] * (not all(known))]
    page = Canvas(f"For “{written[word]}” the model looked most at {looked[0]}", WIDTH, 430)
    read_at, written_at = _places(read), _places(written)
    _draw_lines(page, written_at[word], read_at, weights)
    _draw_read(page, read, (*known, True), weights, read_at)
    _draw_written(page, written[:shown], word, written_at)
    _draw_candidates(page, translation, word)
    _draw_notes(page, notes)
    rivals = [f"{drawable(f'{token:.30}')} {p:.2f}" for token, p in translation.candidates[word]]
    which = "mean of the heads" if head is None else f"head {head}"
    text = (
        f"Written, {shown} of {len(written)}: “{' '.join(written[:shown])}”. For word {word + 1}, "
        f"“{written[word]}”, the model looked most at {', '.join(looked)} (layer {layer}, "
        f"{which}). Likeliest there: {', '.join(rivals)}."
    )
    return Rendering(page.png(), " ".join([text, *map(drawable, notes)]))


def _places(tokens: Sequence[str]) -> list[Place]:
    """Return left edge and width of each word's box, all in one row."""
    wide = [drawn_width(token, 14) + 20 for token in tokens]
    shrink = min(1.0, (WIDTH - 80) / sum(wide))
    starts = accumulate(wide, initial=0.0)
    return [(70 + shrink * x, shrink * w - 4) for x, w in zip(starts, wide, strict=False)]


def _draw_lines(page: Canvas, chosen: Place, read: list[Place], weights: list[float]) -> None:
    """Draw lines from the chosen word to those it looked at, the thicker the more."""
    for (x, wide), weight in zip(read, weights, strict=True):
        if weight >= 0.02:
            ends = [(chosen[0] + chosen[1] / 2, WRITES), (x + wide / 2, READS + 58)]
            page.curve(ends, COLORS[0], 1 + 7 * weight)


def _draw_read(
    page: Canvas,
    tokens: Sequence[str],
    known: Sequence[bool],
    weights: list[float],
    places: list[Place],
) -> None:
    """Draw the words read; a "?" and a frame mark those that the vocabulary lacks."""
    page.text(62, READS + 14, "read", 13, anchor="rm")
    for token, is_known, weight, (x, wide) in zip(tokens, known, weights, places, strict=True):
        page.box(x, READS, wide, 28, fill=_tint(weight), edge="#888888")
        if not is_known:
            page.box(x, READS, wide, 28, edge=COLORS[1], line=3)
            page.text(x + wide / 2, READS - 12, "? unknown" if wide > 66 else "?", 11)
        page.text(x + wide / 2, READS + 14, token, 14, width=wide - 6)
        if weight >= 0.02:
            page.text(x + wide / 2, READS + 44, f"{weight:.2f}", 11)


def _draw_written(page: Canvas, tokens: Sequence[str], word: int, places: list[Place]) -> None:
    page.text(62, WRITES + 14, "written", 13, anchor="rm")
    for i, (token, (x, wide)) in enumerate(zip(tokens, places, strict=False)):
        marked = {"fill": "#FFE14D", "edge": "black", "line": 3} if i == word else {}
        page.box(x, WRITES, wide, 28, **({"fill": "#F4F4F4", "edge": "#888888"} | marked))
        page.text(x + wide / 2, WRITES + 14, token, 14, width=wide - 6)


def _draw_candidates(page: Canvas, translation: Translation, word: int) -> None:
    """Draw the likeliest words at one place as bars."""
    top = WRITES + 64
    page.text(20, top - 12, f"likeliest at place {word + 1}", 12, "#444444", "lm")
    for i, (token, p) in enumerate(translation.candidates[word]):
        y = top + 16 + 25 * i
        page.text(140, y, token, 13, anchor="rm", width=125)
        page.box(150, y - 9, 200 * p, 18, fill=COLORS[0], edge=COLORS[0])
        sign = "  ◀ written" if token == translation.written[word] else ""
        page.text(158 + 200 * p, y, f"{p:.3f}{sign}", 12, anchor="lm")


def _draw_notes(page: Canvas, notes: list[str]) -> None:
    lines = [line for note in notes for line in wrap(note, 62)]
    for i, line in enumerate(lines[:9]):
        page.text(500, WRITES + 54 + 18 * i, line, 12, anchor="lm", width=430)


def _tint(weight: float) -> str:
    """Mix white with blue, the more the larger the weight."""
    blue = (86, 180, 233)
    return "#" + "".join(f"{round(255 - (255 - part) * weight):02X}" for part in blue)
