"""Take heads away and see what it costs, and which head becomes needed then."""

from collections.abc import Sequence
from functools import cache, lru_cache

import ipywidgets
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from transformer_lesson.explorables.base import Explorable, Rendering, drawable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import Canvas, pale
from transformer_lesson.explorables.chart import Chart, Point
from transformer_lesson.explorables.trained import MISSING, trained_translator
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.figures.ranking import first_largest
from transformer_lesson.interpretability.interventions import Head, heads_of, token_losses
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import Batch, epoch

WIDTH, LEFT, TOP, TALL = 940, 120, 96, 44
N_PAIRS = 8  # of the default example: every move reads them once for each head
MOST_HEADS = 48


@lru_cache(maxsize=64)
def render_head_ablation(
    heads: tuple[Head, ...],
    removed: frozenset[Head],
    costs: tuple[float, ...],
    whole: tuple[Point, ...],
    now: tuple[Point, ...],
    loss: float,
    loss_now: float,
) -> Rendering:
    """Draw the heads, those taken away crossed out, and the loss at each position.

    Args:
        heads: in the order of the model; those of one attention make a row.
        removed: which of them are taken away.
        costs: for each head the mean loss if it is taken away in addition.
        whole, now: (position, loss) of the whole model, and without the heads removed.
        loss, loss_now: mean loss of both.
    """
    rows = list(dict.fromkeys(head.attention for head in heads))
    n_columns = max(head.number for head in heads) + 1
    high = max(TOP + TALL * len(rows) + 60, 330)
    page = Canvas(_title(removed, loss, loss_now), WIDTH, high)
    page.text(LEFT, TOP - 32, "mean loss if this head goes too", 12, anchor="lm")
    wide = min(70, 350 // n_columns)
    worst = max(*costs, loss_now + 1e-6)
    for head, cost in zip(heads, costs, strict=True):
        x, y = LEFT + wide * head.number, TOP + TALL * rows.index(head.attention)
        if head in removed:
            page.box(x, y, wide - 3, TALL - 3, fill="#EEEEEE", edge="#888888")
            page.cross(x, y, wide - 3, TALL - 3)
            continue
        share = (cost - loss_now) / (worst - loss_now)
        fill = COLORS[1] if share > 0.66 else pale(COLORS[1]) if share > 0.1 else "white"
        page.box(x, y, wide - 3, TALL - 3, fill=fill, edge="#888888")
        page.text(x + wide / 2, y + TALL / 2, f"{cost:.2f}", 12, width=wide - 4)
    for i, name in enumerate(rows):
        page.text(LEFT - 8, TOP + TALL * (i + 0.5), _short(name), 11, anchor="rm", width=LEFT - 14)
    for number in range(n_columns):
        page.text(LEFT + wide * (number + 0.5), TOP - 12, f"head {number}", 11, width=wide)
    _draw_losses(page, whole, now, bool(removed))
    return Rendering(page.png(), _text(heads, removed, costs, loss, loss_now))


def _short(attention: str) -> str:
    stack, layer, kind = attention.split(".")[:3]
    kind = kind.removesuffix("_attention")
    return f"layer {layer}, {kind}" if stack == "decoder" else f"{stack} {layer}, {kind}"


def _named(head: Head) -> str:
    return f"{_short(head.attention)} head {head.number}"


def _title(removed: frozenset[Head], loss: float, loss_now: float) -> str:
    if not removed:
        return f"The whole model: loss {loss:.2f}"
    what = f"{len(removed)} head" + ("s" if len(removed) > 1 else "")
    return f"Without {what}: loss {loss_now:.2f}, with all heads {loss:.2f}"


def _text(heads, removed, costs, loss: float, loss_now: float) -> str:
    gone = ", ".join(_named(head) for head in heads if head in removed)
    text = f"Taken away: {gone}. " if gone else "Nothing is taken away. "
    text += f"Mean loss {loss_now:.2f} nats per token, with all heads {loss:.2f}."
    left = [(cost, head) for cost, head in zip(costs, heads, strict=True) if head not in removed]
    if left:
        cost, head = left[int(first_largest(torch.tensor([cost for cost, _ in left])))]
        text += f" Of those left, {_named(head)} is needed most: without it too, {cost:.2f}."
    return drawable(text)


def _draw_losses(page: Canvas, whole: Sequence[Point], now: Sequence[Point], ablated: bool) -> None:
    """Draw the loss of each position, of the whole model below that of the ablated one."""
    chart = Chart(page, 560, TOP, 350, 180, *zip(*whole, *now, strict=True))
    chart.axes("position", "")
    curves = [("all heads", whole, COLORS[0]), ("without", now, COLORS[1])][: 1 + ablated]
    page.text(560, TOP - 32, "loss at each position, nats", 12, anchor="lm")
    for i, (name, losses, color) in enumerate(curves):
        chart.line(losses, color)
        page.box(560 + 110 * i, TOP - 16, 10, 10, fill=color)
        page.text(576 + 110 * i, TOP - 11, name, 12, anchor="lm")


class HeadAblation(Explorable):
    """Switch heads off, one or several, and see the loss at each position.

    The number in a head's cell is the mean loss if it goes too, so that you see which head has
    taken over: it costs little while another does its work, and much afterwards.

    Args:
        model: predicts next tokens, in evaluation mode; by default the translator that comes
            with the package, on sentences of its corpus.
        batch: what it reads, and the labels.
        attention: offer only heads of attentions with this in their name.
        counted: which labels make the mean loss, shape (batch, n); by default all but padding.

    Raises:
        ValueError: no batch, a model in training mode, no such attention, or over 48 heads.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        batch: Batch | None = None,
        attention: str = "",
        counted: Bool[Tensor, "batch n"] | None = None,
    ):
        if model is None and (checkpoint := trained_translator()):
            model, attention = checkpoint.model, attention or "decoder.1.cross"
            batch = epoch(grammar.generate(N_PAIRS, seed=5), checkpoint.tokenizer, N_PAIRS)[0]
        self.model, self.batch, self.heads = model, batch, ()
        if model is not None:
            self.heads = tuple(_checked(model, batch, attention))
            pad_id = model.config.pad_id
            real = torch.ones_like(batch.labels) if pad_id is None else batch.labels != pad_id
            self.counted = real.bool() if counted is None else counted
        self.losses = cache(self._losses)
        super().__init__(
            {
                _named(head): ipywidgets.ToggleButton(False, description=_named(head))
                for head in self.heads
            }
        )

    def render(self) -> Rendering:
        """Draw the model without the heads that are switched off."""
        if self.model is None:
            return say(MISSING)
        removed = frozenset(head for head in self.heads if self.values[_named(head)])
        (whole, loss), (now, loss_now) = self.losses(frozenset()), self.losses(removed)
        costs = tuple(self.losses(removed | {head})[1] for head in self.heads)
        return render_head_ablation(self.heads, removed, costs, whole, now, loss, loss_now)

    def _losses(self, without: frozenset[Head]) -> tuple[tuple[Point, ...], float]:
        """Return the loss of each position that counts, and the mean over all of them."""
        losses = token_losses(self.model, self.batch, without)  # (batch, n)
        counts = self.counted.sum(dim=0)  # (n,)
        sums = losses.where(self.counted, 0).sum(dim=0)  # (n,)
        places = counts.nonzero()[:, 0]  # where something counts
        each = zip(places.tolist(), (sums / counts)[places].tolist(), strict=True)
        return tuple(each), float(losses[self.counted].mean())

    def __repr__(self) -> str:
        gone = [name for name, off in self.values.items() if off]
        return f"HeadAblation(without={', '.join(gone) or 'nothing'})"


def _checked(model: nn.Module, batch: Batch | None, attention: str) -> list[Head]:
    if batch is None:
        raise ValueError("batch is missing: give a model of your own what it should read.")
    if model.training:
        raise ValueError("the model is in training mode: call its .eval() first.")
    heads = heads_of(model, attention)
    if len(heads) > MOST_HEADS:
        raise ValueError(
            f"{len(heads)} heads do not fit the picture, {MOST_HEADS} do: choose some with "
            "attention='cross_attention' or attention='decoder.0'."
        )
    return heads
