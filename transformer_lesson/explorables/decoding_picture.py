"""One step of decoding: what the cache spares, and the distribution that a token comes from."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.explorables.base import Rendering, drawable
from transformer_lesson.explorables.canvas import Canvas, drawn_width, fitted
from transformer_lesson.explorables.decoding import (
    Choice,
    Decoding,
    cache_use,
    choose_from,
)
from transformer_lesson.generation import Greedy, Sample
from transformer_lesson.plots import COLORS
from transformer_lesson.tokenizer import Tokenizer

WIDTH, LEFT, BAR, N_BARS, N_TOKENS = 940, 150, 150, 12, 60


class Column(NamedTuple):
    """A column of bars: where it stands, how long a bar of probability 1 is, and its numbers."""

    left: int
    width: int
    heading: str
    values: Float[Tensor, " vocab_size"]
    color: str


def cache_height(decoding: Decoding) -> int:
    """Return how many of the upper pixels `draw_cache` takes."""
    return 170 if decoding.source else 110


def draw_cache(
    page: Canvas, decoding: Decoding, name: str, text_so_far: Sequence[str], step: int
) -> str:
    """Draw which tokens' keys and values come from the cache; return the same in words.

    Args:
        page: the canvas.
        decoding: what is shown.
        name: of the text.
        text_so_far: everything that is read at this step, `start` included.
        step: from 0.
    """
    use, n = cache_use(len(decoding.start), step), len(text_so_far)
    told = f"reused {use.reused}, computed {use.computed}; without a cache {n}"
    _strip(page, 52, name, text_so_far, use.computed, f"keys and values: {told}")
    words = f"Keys and values of the text: {told}."
    if decoding.source:
        n = len(decoding.source)
        computed = n if step == 0 else 0
        told = f"reused {n - computed}, computed {computed}; without a cache {n}"
        _strip(page, 112, "source", decoding.source, computed, f"keys and values: {told}")
        words += f" Of the source: {told}."
    return words


def _strip(page: Canvas, y: int, name: str, tokens: Sequence[str], n_new: int, note: str) -> None:
    """Draw tokens in a row: "=" and grey for what is in the cache, "+" and yellow for the new."""
    page.text(92, y + 12, name, 12, anchor="rm")
    signs = ["="] * (len(tokens) - n_new) + ["+"] * n_new
    pairs = list(zip(signs, tokens, strict=True))[-N_TOKENS:]
    labels = [fitted(f"{sign} {token}", 12, 110) for sign, token in pairs]
    wide = [drawn_width(label, 12) + 10 for label in labels]
    first = 0
    while sum(wide[first:]) + 4 * len(wide[first:]) > WIDTH - 190:
        first += 1  # the newest stay
    hidden = len(tokens) - len(labels) + first
    x = 100.0
    if hidden:
        page.text(x, y + 12, f"… {hidden} more", 11, "#444444", "lm")
        x += 70
    for label, width in zip(labels[first:], wide[first:], strict=True):
        new = {"fill": "#FFE14D", "edge": "black", "line": 2}
        old = {"fill": "#E8EFF5", "edge": "#999999"}
        page.box(x, y, width, 24, **(new if label[0] == "+" else old))
        page.text(x + width / 2, y + 12, label, 12)
        x += width + 4
    page.text(100, y + 37, note, 11, "#444444", "lm")


def render_distribution(decoding: Decoding, tokenizer: Tokenizer, step: int) -> Rendering:
    """Draw one step of greedy decoding or sampling.

    Args:
        decoding: without a tree.
        tokenizer: gives the tokens' texts.
        step: from 0.
    """
    before = [tokenizer.token(id_) for id_ in decoding.written[:step]]
    probabilities, chosen = decoding.probabilities[step], decoding.written[step]
    label, p = drawable(f"{tokenizer.token(chosen):.30}"), probabilities[chosen].item()
    choice, title = None, f"“{label}” is the likeliest next token ({p:.3f})"
    told = f"Greedy takes the likeliest token, “{label}” ({p:.3f})."
    if isinstance(decoding.strategy, Sample):
        choice = choose_from(probabilities, decoding.strategy)
        title = f"“{label}” was drawn with probability {choice.drawn_from[chosen]:.3f}"
        told = f"{_told(choice, decoding.strategy)} {title}; the model gave it {p:.3f}."
    page = Canvas(
        f"Step {step + 1} of {decoding.n_steps}: {title}", WIDTH, cache_height(decoding) + 345
    )
    cached = draw_cache(page, decoding, "text so far", [*decoding.start, *before], step)
    likeliest = probabilities.argsort(descending=True, stable=True)[:N_BARS].tolist()
    shown = likeliest if chosen in likeliest else [*likeliest[:-1], chosen]
    columns = _columns(probabilities, choice, decoding.strategy)
    _draw_bars(page, cache_height(decoding) + 44, tokenizer, shown, chosen, columns, choice)
    best = ", ".join(
        f"{drawable(f'{tokenizer.token(id_):.30}')} {probabilities[id_]:.3f}"
        for id_ in likeliest[:5]
    )
    text = (
        f"Step {step + 1} of {decoding.n_steps}. Likeliest for the model: {best}. {told} {cached}"
    )
    return Rendering(page.png(), text)


def _told(choice: Choice, sample: Sample) -> str:
    kept = int((choice.drawn_from > 0).sum())
    told = f"Temperature {sample.temperature:.2g}; {kept} tokens kept"
    if sample.top_k is not None:
        told += f", {int(choice.cut_by_k.sum())} cut by top-k {sample.top_k}"
    if sample.top_p is not None:
        told += f", {int(choice.cut_by_p.sum())} cut by top-p {sample.top_p:.2g}"
    return f"{told}."


def _columns(
    probabilities: Tensor, choice: Choice | None, strategy: Greedy | Sample
) -> list[Column]:
    """Return the columns of bars: one for greedy decoding, three for sampling."""
    if choice is None:
        return [Column(LEFT, 560, "the model's probabilities", probabilities, COLORS[0])]
    k, p = strategy.top_k or "off", strategy.top_p or "off"
    heated = f"after temperature {strategy.temperature:.2g}"
    return [
        Column(LEFT, BAR, "the model's probabilities", probabilities, COLORS[0]),
        Column(LEFT + 230, BAR, heated, choice.heated, COLORS[5]),
        Column(LEFT + 460, BAR, f"after top-k {k}, top-p {p}", choice.drawn_from, COLORS[2]),
    ]


def _draw_bars(
    page: Canvas, top: int, tokenizer: Tokenizer, shown: list[int], chosen: int, columns, choice
) -> None:
    """Draw one row of bars per token, and one for all others together."""
    for column in columns:
        page.text(column.left, top - 24, column.heading, 12, "#444444", "lm")
    for i, id_ in enumerate(shown):
        y = top + 22 * i
        if id_ == chosen:
            page.box(20, y - 10, WIDTH - 40, 20, fill="#FFF3B0", edge="black")
            page.text(26, y, "▶", 11, anchor="lm")
            page.text(WIDTH - 30, y, "chosen", 11, anchor="rm")
        page.text(LEFT - 8, y, tokenizer.token(id_), 12, anchor="rm", width=100)
        cut = choice is not None and choice.cut_by(id_)
        for column in columns[: 2 if cut else 3]:
            _bar(page, y, column, column.values[id_].item(), column.color)
        if cut:
            long = BAR * choice.heated[id_].item()
            page.hatch(columns[2].left, y - 7, long, 14, "#555555")
            page.text(columns[2].left + long + 6, y, f"✗ cut by {cut}", 11, anchor="lm")
    if others := tokenizer.vocab_size - len(shown):
        y = top + 22 * len(shown)
        page.text(LEFT - 8, y, f"{others:,} others", 12, "#444444", "rm")
        for column in columns:
            rest = 1 - column.values[torch.tensor(shown)].sum().clamp(max=1).item()
            _bar(page, y, column, rest, "#999999")


def _bar(page: Canvas, y: int, column: Column, p: float, color: str) -> None:
    page.box(column.left, y - 7, column.width * p, 14, fill=color, edge=color)
    page.text(column.left + column.width * p + 6, y, f"{p:.3f}", 11, anchor="lm")
