"""Replace one token, then put one vector of the right run back: where does the answer return?"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import ipywidgets
import numpy as np
import torch
from matplotlib import colormaps
from torch import Tensor, nn

from transformer_lesson.explorables.base import Explorable, Rendering, drawable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.trained import MISSING, trained_translator
from transformer_lesson.figures.plots import COLORS, DIVERGING
from transformer_lesson.figures.ranking import first_largest, from_largest
from transformer_lesson.files import printable
from transformer_lesson.interpretability.interventions import (
    Site,
    head_sites,
    patching_grid,
    stream_sites,
)

SOURCE, TARGET = "the old dog sees the small cat .", "der alte Hund sieht die kleine Katze ."
OTHERS = "a young child buys a red house ,"  # each replaces the word at its place
WIDTH, LEFT, TOP, TALL = 940, 150, 84, 40
SMALLEST = 0.1  # nats: below that there is nothing to trace


class Patched(NamedTuple):
    """What came back. `grid` is `None` if the replaced token did not matter.

    Args:
        answer: the clean run's likeliest token.
        clean, corrupted: its log-probability in both runs, in nats.
        grid: share of the difference that comes back, shape (site, position).
    """

    answer: str
    clean: float
    corrupted: float
    grid: Tensor | None


def render_patching_grid(
    patched: Patched, sites: Sequence[str], tokens: Sequence[str], position: int, other: str
) -> Rendering:
    """Draw where the clean run's vector brings the answer back: a row per site.

    Args:
        patched: the answer and the grid.
        sites: the rows' names.
        tokens: the clean tokens, one for each column.
        position: which token was replaced.
        other: by what.
    """
    replaced, other = f"“{tokens[position]:.20}”", f"“{other:.20}”"
    low, high = (math.exp(x) for x in (patched.corrupted, patched.clean))
    text = (
        f"Token {position}, {replaced}, was replaced by {other}. The probability of the answer "
        f"“{patched.answer:.20}” went from {high:.2f} to {low:.2f}. "
    )
    if patched.grid is None:
        return say(drawable(f"{text}That is too little to trace: replace another token."))
    best, places = patched.grid.amax(dim=1), first_largest(patched.grid).tolist()  # of each row
    places = [
        f"{sites[i]}: {best[i]:.2f} at {places[i]} “{tokens[places[i]]:.20}”"
        for i in from_largest(best, 4)
    ]
    text += f"One vector of the clean run brings back, at most: {'; '.join(places)}."
    title = f"{replaced} became {other}: where “{patched.answer:.20}” comes back"
    return Rendering(_draw(title, patched.grid.numpy(), sites, tokens, position), drawable(text))


def _draw(title: str, grid: np.ndarray, sites, tokens, position: int) -> bytes:
    rows, columns = grid.shape
    wide, tall = max(1, min(80, (WIDTH - LEFT - 20) // columns)), min(TALL, 480 // rows)
    page = Canvas(title, WIDTH, TOP + tall * rows + 100)
    colors = colormaps[DIVERGING](0.5 - np.clip(grid, -1, 1) / 2, bytes=True)[..., :3]
    page.picture(LEFT, TOP, wide * columns, tall * rows, np.ascontiguousarray(colors))
    for (row, column), share in np.ndenumerate(grid):
        if wide >= 30 and tall >= 16 and abs(share) >= 0.05:
            x, y = LEFT + wide * (column + 0.5), TOP + tall * (row + 0.5)
            page.text(x, y, f"{share:.2f}", 11, "white" if abs(share) > 0.7 else "black")
    page.box(LEFT + wide * position, TOP, wide, tall * rows, edge=COLORS[1], line=2)
    for row in range(0, rows, math.ceil(13 / tall)):
        page.text(LEFT - 8, TOP + tall * (row + 0.5), sites[row], 11, anchor="rm", width=LEFT - 16)
    for column in range(0, columns, math.ceil(15 / wide)):
        x, bottom = LEFT + wide * (column + 0.5), TOP + tall * rows
        page.turned(x, bottom + 8, tokens[column], 11, end=True, width=84)
    legend = "orange: comes back (1 = all of it); purple: gets worse; framed: the replaced token"
    page.text(LEFT, TOP - 18, legend, 11, "#444444", "lm")
    return page.png()


class PatchingGrid(Explorable):
    """Choose which token is replaced and which answer is watched; see which vectors carry it.

    Args:
        model: decoder-only, called with ids alone, in evaluation mode; by default the translator
            that comes with the package, whose English words are replaced.
        ids: the clean sentence, shape (1, n).
        others: the id that replaces each token, shape (1, n).
        tokens: the clean tokens' texts; by default the ids.
        position, answer: which token is replaced at first, and after which one the answer comes.

    Raises:
        ValueError: sizes that do not fit, or a model in training mode.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        ids: Tensor | None = None,
        others: Tensor | None = None,
        tokens: Sequence[str] | None = None,
        position: int | None = None,
        answer: int | None = None,
    ):
        self.model, self.tail = model, ()
        self.names = self.read = ["nothing"]  # columns, and tokens after which an answer comes
        if model is not None:
            self._take(model, ids, others, tokens)
        elif checkpoint := trained_translator():
            self._take_translator(*checkpoint[:2])
            position = 2 if position is None else position
            answer = 0 if answer is None else answer
        self.patched = cache(self._patched)
        position = len(self.names) // 2 if position is None else position
        answer = len(self.read) - 1 if answer is None else answer
        super().__init__(
            {
                "position": _slider("Replace", self.names, position),
                "answer": _slider("Answer after", self.read, answer),
                "heads": ipywidgets.ToggleButtons(
                    options=[("residual stream", False), ("heads", True)], description="Patch"
                ),
            }
        )

    def _take(self, model, ids, others, tokens) -> None:
        for name, given in (("ids", ids), ("others", others)):
            if given is None or given.dim() != 2 or given.size(0) != 1:
                shape = None if given is None else tuple(given.shape)
                raise ValueError(f"{name} have shape {shape}, but one sentence is (1, n).")
        if ids.shape != others.shape or (tokens is not None and len(tokens) != ids.size(1)):
            raise ValueError(
                f"{ids.size(1)} ids, {others.size(1)} others and "
                f"{ids.size(1) if tokens is None else len(tokens)} tokens: give one of each kind."
            )
        if model.training:
            raise ValueError("the model is in training mode: call its .eval() first.")
        self.ids, self.others, self.stack, self.attention = ids, others, "decoder", "decoder"
        self.names = [str(i) for i in ids[0].tolist()] if tokens is None else list(tokens)
        self.read = self.names
        self.told = dict(zip(ids[0].tolist(), self.names, strict=True))
        self.name = lambda id_: self.told.get(id_, str(id_))

    def _take_translator(self, model, tokenizer) -> None:
        end = [tokenizer.eos_id]
        self.ids = torch.tensor([tokenizer.encode(SOURCE) + end])
        self.others = torch.tensor([tokenizer.encode(OTHERS) + end])
        self.others[0, -1] = tokenizer.encode(".")[0]
        target = [tokenizer.bos_id, *tokenizer.encode(TARGET)]
        self.model, self.tail = model, (torch.tensor([target]),)
        self.stack, self.attention = "encoder", "encoder"
        self.names = [tokenizer.token(i) for i in self.ids[0]]
        self.read, self.name = [tokenizer.token(i) for i in target], tokenizer.token

    def render(self) -> Rendering:
        """Draw the grid of the chosen replacement."""
        if self.model is None:
            return say(MISSING)
        position = self.values["position"]
        patched = self.patched(**self.values)
        sites = [site.label for site in self._sites(self.values["heads"])]
        other = self.name(int(self.others[0, position]))
        return render_patching_grid(patched, sites, self.names, position, other)

    def _sites(self, heads: bool) -> list[Site]:
        if heads:
            return head_sites(self.model, self.attention)
        return stream_sites(self.model, self.stack)

    @torch.no_grad()
    def _patched(self, position: int, answer: int, heads: bool) -> Patched:
        corrupted = self.ids.clone()
        corrupted[0, position] = self.others[0, position]
        clean_log = self.model(self.ids, *self.tail)[0, answer].log_softmax(dim=-1)
        best = int(first_largest(clean_log))
        log = self.model(corrupted, *self.tail)[0, answer].log_softmax(dim=-1)
        ends = float(clean_log[best]), float(log[best])
        grid = None
        if abs(ends[0] - ends[1]) > SMALLEST:
            grid = patching_grid(
                self.model,
                (self.ids, *self.tail),
                (corrupted, *self.tail),
                self._sites(heads),
                lambda logits: logits[:, answer].log_softmax(dim=-1)[:, best],
            )
        return Patched(self.name(best), *ends, grid)


def _slider(description: str, tokens: Sequence[str], value: int) -> ipywidgets.SelectionSlider:
    options = [(f"{i}: {printable(token, 12)}", i) for i, token in enumerate(tokens)]
    return ipywidgets.SelectionSlider(options=options, value=value, description=description)
