"""Change one token and see which outputs move: a model that sees the future gives itself away."""

import math
from collections.abc import Mapping
from functools import cache, lru_cache

import ipywidgets
import torch
from jaxtyping import Int
from torch import Tensor, nn

from transformer_lesson.explorables.base import Explorable, Rendering, drawable
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.files import printable
from transformer_lesson.interpretability.causality import Model, changed_positions
from transformer_lesson.model.blocks import DecoderBlock
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderOnlyTransformer
from transformer_lesson.text.tokenizers import words

SENTENCE = "Every object has an identity, a type and a value."
THRESHOLD = 1e-5  # as in `causality.leaks_future`: smaller changes are rounding
LOWEST, HIGHEST = 1e-8, 1e2  # ends of the drawn scale
REGIONS = (("before", COLORS[1]), ("changed", "#999999"), ("after", COLORS[0]))
LEFT, RIGHT, FLOOR = 80, 760, 270  # where the bars stand, in pixels


@cache
def example_models() -> dict[str, Model]:
    """Return untrained models by name: one that is causal, and four that are not.

    All are functions from ids (batch, n) to outputs (batch, n, numbers) for a vocabulary of 16.
    """
    config = ModelConfig(vocab_size=16, d_model=32, n_heads=4, n_layers=2, d_ff=64, max_len=16)
    with torch.random.fork_rng(devices=[]):  # leave the learner's random numbers alone
        torch.manual_seed(0)
        decoder = DecoderOnlyTransformer(config).eval()
        encoder = EncoderOnlyTransformer(config).eval()
        two_attentions = nn.ModuleList(DecoderBlock(config) for _ in range(2)).eval()

    def masked_by(make_mask):
        """Return the decoder with another mask: make_mask gives it for n tokens."""

        def model(ids):
            x = decoder.embedding(ids)  # (batch, n, d_model)
            for block in decoder.decoder:
                x = block(x, make_mask(ids.size(1)))
            return decoder.projection(decoder.decoder_norm(x))  # (batch, n, vocab_size)

        return model

    def second_unmasked(ids):
        x = decoder.embedding(ids)  # (batch, n, d_model)
        for block in two_attentions:
            x = block(x, memory=x, mask=causal_mask(ids.size(1)))  # no memory_mask
        return decoder.projection(decoder.decoder_norm(x))  # (batch, n, vocab_size)

    return {
        "decoder-only, causal mask": decoder,
        "no mask at all": masked_by(lambda n: None),
        "mask shifted by one": masked_by(lambda n: torch.ones(1, 1, n, n).tril(1).bool()),
        "second attention without a mask": second_unmasked,
        "encoder-only, sees all by design": encoder,
    }


@lru_cache(maxsize=64)
def render_leak_probe(
    model: str, tokens: tuple[str, ...], position: int, changes: tuple[float, ...]
) -> Rendering:
    """Draw how far each output moved after the token at one position was replaced.

    Args:
        model: the model's name.
        tokens: the sentence.
        position: which token was replaced.
        changes: largest change of each position's output, from `causality.changed_positions`.
    """
    moved = [change > THRESHOLD for change in changes]
    before, after = sum(moved[:position]), sum(moved[position + 1 :])
    verdict = f"{before} of {position} earlier outputs moved"
    verdict += ": it sees the future" if before else ": no leak here" if position else ""
    replaced = drawable(f"{tokens[position]:.20}")
    text = (
        f"{drawable(f'{model:.60}')}: token {position} (“{replaced}”) was replaced by another. "
        f"{verdict[0].upper()}{verdict[1:]}. Its own output moved by {changes[position]:.2g}; "
        f"{after} of {len(tokens) - position - 1} later outputs moved."
    )
    if before:
        text += f" Largest change before it: {max(changes[:position]):.2g}."
    text += " Changes under 1e-5 are rounding."
    page = Canvas(f"{model:.34}: {verdict}", RIGHT + 20, 320)
    _draw(page, tokens, position, changes)
    return Rendering(page.png(), text)


def _height(change: float) -> float:
    """Return the pixels above the floor at which a change is drawn: 20 per power of ten."""
    return 20 * (math.log10(min(max(change, LOWEST), HIGHEST)) - math.log10(LOWEST))


def _draw(page: Canvas, tokens: tuple[str, ...], position: int, changes: tuple[float, ...]) -> None:
    n = len(tokens)
    wide = (RIGHT - LEFT) / n
    spans = ((0, position), (position, position + 1), (position + 1, n))
    for (start, end), (where, color) in zip(spans, REGIONS, strict=True):
        if end > start:
            y = 62 if where == "changed" else 46  # neighbors must not overlap
            page.text(LEFT + wide * (start + end) / 2, y, where, width=RIGHT)
        for i in range(start, end):
            high = _height(changes[i])
            x, gap = LEFT + wide * i, 0.1 * wide
            page.box(x + gap, FLOOR - high, wide - 2 * gap, high, fill=color, edge=color)
    for edge in (position, position + 1):
        page.box(LEFT + wide * edge, 56, 0, FLOOR - 56, edge="#888888")
    for label, change in (("≤ 1e-8", LOWEST), ("1e-5", THRESHOLD), ("0.01", 0.01), ("1", 1.0)):
        page.text(LEFT - 8, FLOOR - _height(change), label, anchor="rm")
    for change in (LOWEST, THRESHOLD):
        page.box(LEFT, FLOOR - _height(change), RIGHT - LEFT, 0, edge="black")
    every = math.ceil(45 / wide)  # more labels than that would overlap
    for i in range(0, n, every):
        x = LEFT + wide * (i + 0.5)
        page.text(x, FLOOR + 14, tokens[i], width=every * wide - 4)
        if changes[i] == 0:
            page.text(x, FLOOR - 10, "0")
    page.text((LEFT + RIGHT) / 2, FLOOR + 38, "position, with its token")
    page.turned(14, FLOOR - 100, "change of the output")


class LeakProbe(Explorable):
    """Choose a model, change one token, and see which outputs move.

    Args:
        models: name to function from ids (1, n) to outputs (1, n, anything), in evaluation
            mode; by default a causal model and four that are not.
        ids: the sentence's token ids, which the models understand; ids 0 and 1 must be in
            their vocabulary. Needed with models of your own.
        tokens: the sentence's words, for the labels; by default the ids.

    Raises:
        ValueError: sizes that do not fit, or a model in training mode.
    """

    still_values = {}

    def __init__(
        self,
        models: Mapping[str, Model] | None = None,
        ids: Int[Tensor, "1 n"] | None = None,
        tokens: list[str] | None = None,
    ):
        if models is None:
            models, tokens = example_models(), words(SENTENCE)
            known = sorted(set(tokens))
            ids = torch.tensor([[known.index(token) for token in tokens]])  # (1, n)
        _check(models, ids, tokens)
        self.models, self.ids = dict(models), ids
        self.tokens = tuple(tokens or [str(id_) for id_ in ids[0].tolist()])
        self.changes = cache(self._changes)
        places = [(f"{i}: {printable(token, 12)}", i) for i, token in enumerate(self.tokens)]
        super().__init__(
            {
                "model": ipywidgets.ToggleButtons(
                    options=[(printable(name, 60), name) for name in self.models],
                    description="Model",
                ),
                "position": ipywidgets.SelectionSlider(
                    options=places, value=len(places) // 2, description="Change token"
                ),
            }
        )

    def render(self) -> Rendering:
        """Draw the chosen model's reaction to the chosen change."""
        model, position = self.values["model"], self.values["position"]
        return render_leak_probe(model, self.tokens, position, self.changes(model, position))

    def _changes(self, model: str, position: int) -> tuple[float, ...]:
        changes = changed_positions(self.models[model], self.ids, position)  # (n,)
        return tuple(changes.nan_to_num(nan=math.inf).tolist())  # what became NaN has moved


def _check(models: Mapping[str, Model], ids: Tensor | None, tokens: list[str] | None) -> None:
    if not isinstance(models, Mapping) or not models:
        raise ValueError('models must be a dict of at least one model: {"mine": model}.')
    if ids is None or ids.dim() != 2 or ids.size(0) != 1 or not ids.numel():
        shape = None if ids is None else tuple(ids.shape)
        raise ValueError(f"ids have shape {shape}, but one sentence is (1, n); use ids[None].")
    if tokens is not None and len(tokens) != ids.size(1):
        raise ValueError(f"there are {len(tokens)} tokens for {ids.size(1)} ids: give one each.")
    for name, model in models.items():
        if getattr(model, "training", False):
            raise ValueError(
                f"{name!r} is in training mode, where dropout moves everything: "
                "call its .eval() first."
            )
