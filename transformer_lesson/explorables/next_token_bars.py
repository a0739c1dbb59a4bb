"""One step of greedy decoding or sampling as bars: the model's probabilities and what is drawn."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.explorables.base import Rendering, drawable
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.decoding import WIDTH, Decoding, cache_height, draw_cache
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.figures.ranking import from_largest
from transformer_lesson.generation import Greedy, Sample, top_k_filter, top_p_filter
from transformer_lesson.text.tokenizers import Tokenizer

LEFT, BAR, N_BARS = 150, 150, 12


class Choice(NamedTuple):
    """What a sampling strategy made of a distribution; all of shape (vocab_size,)."""

    heated: Float[Tensor, " vocab_size"]
    drawn_from: Float[Tensor, " vocab_size"]
    cut_by_k: Tensor
    cut_by_p: Tensor

    def cut_by(self, id_: int) -> str:
        """Return what cut a token: "top-k", "top-p" or, if it stays, nothing."""
        return "top-k" if self.cut_by_k[id_] else "top-p" if self.cut_by_p[id_] else ""


def choose_from(probabilities: Float[Tensor, " vocab_size"], sample: Sample) -> Choice:
    """Return a distribution after its temperature, after all of `sample`, and who cut what.

    Args:
        probabilities: the model's own.
        sample: its temperature, top_k and top_p.
    """
    logits = probabilities.log() / sample.temperature
    after_k = logits if sample.top_k is None else top_k_filter(logits, sample.top_k)
    after_p = after_k if sample.top_p is None else top_p_filter(after_k, sample.top_p)
    cut_by_k = after_k.isneginf() & ~logits.isneginf()
    cut_by_p = after_p.isneginf() & ~after_k.isneginf()
    return Choice(logits.softmax(dim=-1), after_p.softmax(dim=-1), cut_by_k, cut_by_p)


class Column(NamedTuple):
    """A column of bars: where it stands, how long a bar of probability 1 is, and its numbers."""

    left: int
    width: int
    heading: str
    values: Float[Tensor, " vocab_size"]
    color: str


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
    likeliest = from_largest(probabilities, N_BARS)
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
