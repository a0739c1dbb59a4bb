"""Scrub through a training run: the loss, what the model wrote, and where it looked."""

import math
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

import ipywidgets
import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib import colormaps
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering, drawable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import TINTS, Canvas, drawn_width, fitted
from transformer_lesson.explorables.chart import Chart
from transformer_lesson.explorables.player import Player
from transformer_lesson.figures.plots import COLORS, SEQUENTIAL
from transformer_lesson.figures.ranking import first_largest
from transformer_lesson.generation import generate
from transformer_lesson.generation.session import evaluating
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer, words

WIDTH, MAP_LEFT, MAP_TOP = 940, 500, 130
LONGEST = 30  # words of a translation: an untrained model does not stop by itself
EMPTY = (
    "There is nothing to replay yet: train with on_step=recorder, a ReplayRecorder, "
    "then show TrainingReplay(recorder.snapshots)."
)


if TYPE_CHECKING:
    from transformer_lesson.training import StepReport


def cross_attention(
    model: EncoderDecoderTransformer,
    source_ids: Int[Tensor, "batch source"],
    target_ids: Int[Tensor, "batch target"],
) -> Float[Tensor, "layer batch head target source"]:
    """Return where each layer's decoder looked in the source.

    Row t belongs to the token that *follows* `target_ids[:, t]`: to choose it the model looked.
    """
    device = model.projection.weight.device
    with evaluating(model), torch.no_grad(), record(model) as run:
        model(source_ids.to(device), target_ids.to(device))
    weights = [value for name, value in run.items() if name.endswith("cross_attention.weights")]
    return torch.stack(weights).float().cpu()


class Snapshot(NamedTuple):
    """What a model was like after one step of its training.

    Args:
        step: counts from 1.
        loss: mean training loss of the steps since the snapshot before, in nats per token.
        weights: attention weights; any kind, of any model.
        query_tokens, key_tokens: the words that look, and those that are looked at.
        true_cells: (query, key) pairs that should be strong, if that is known.
        written: what the model wrote at this step, if it writes.
        expected: what it should have written.
    """

    step: int
    loss: float
    weights: Float[Tensor, "layer head query key"]
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    true_cells: Sequence[tuple[int, int]] = ()
    written: Sequence[str] = ()
    expected: Sequence[str] = ()


class ReplayRecorder:
    """Keeps a `Snapshot` of a translator now and then while it trains.

        recorder = ReplayRecorder(tokenizer, pair)
        train(model, batches, config, on_step=recorder)
        TrainingReplay(recorder.snapshots)

    A snapshot takes about as long as one step of training: the model translates the sentence,
    and then reads the right translation, so that the rows of its cross-attention are the same
    words from the first snapshot to the last. The row of a word is where the model looks to
    choose this word.

    Args:
        tokenizer: the model's, one for both languages.
        pair: the sentence to follow. Its alignment counts word by word, so a tokenizer of
            smaller pieces leaves it out.
        every: steps from one snapshot to the next; the first is taken after step 1.

    Raises:
        ValueError: `every` is under 1.
    """

    def __init__(self, tokenizer: Tokenizer, pair: Pair, every: int = 10):
        if every < 1:
            raise ValueError(f"every is {every}, but snapshots are at least 1 step apart.")
        self.tokenizer, self.every, self.snapshots = tokenizer, every, []
        self._losses: list[float] = []
        self._source = [*tokenizer.encode(pair.source), tokenizer.eos_id]
        self._target = tokenizer.encode(pair.target, add_special=True)
        by_words = len(self._source) == len(words(pair.source)) + 1
        by_words = by_words and len(self._target) == len(words(pair.target)) + 2
        self._true_cells = [(t, s) for s, t in pair.alignment] if by_words else []

    def __call__(self, report: "StepReport") -> None:
        """Take in what `train` tells after a step."""
        self._losses.append(report.loss)
        if report.step == 1 or report.step % self.every == 0:
            loss = sum(self._losses) / len(self._losses)
            self.snapshots.append(self._snapshot(report.model, report.step, loss))
            self._losses.clear()

    def _snapshot(self, model, step: int, loss: float) -> Snapshot:
        longest = min(LONGEST, 2 * len(self._target), model.config.max_len - 1)
        written = generate(model, self._source, longest).ids[0]
        source, target = torch.tensor([self._source]), torch.tensor([self._target[:-1]])
        weights = cross_attention(model, source, target)
        return Snapshot(
            step,
            loss,
            weights[:, 0],  # (layer, head, target, source)
            self._tokens(self._target[1:]),
            self._tokens(self._source),
            self._true_cells,
            self._tokens(written),
            self._tokens(self._target[1:]),
        )

    def _tokens(self, ids: list[int]) -> list[str]:
        return [self.tokenizer.token(id_) for id_ in ids]


def render_training_replay(
    snapshots: Sequence[Snapshot], index: int, layer: int, head: int | None
) -> Rendering:
    """Draw the losses of the run, and the sentence and one head's weights at one step of it.

    Args:
        snapshots: of one run, in order.
        index: which one is shown.
        layer: from 0.
        head: from 0; `None` for the mean over the layer's heads.
    """
    now = snapshots[index]
    right = matched(now.written, now.expected)
    weights = now.weights[layer].mean(0) if head is None else now.weights[layer, head]
    hits = strongest_hits(weights, now.true_cells)
    title = f"Step {now.step:,}: loss {now.loss:.3g}"
    if now.expected:
        title += f", {sum(right)} of {len(now.expected)} words right"
    rows, columns = max(len(now.query_tokens), 8), len(now.key_tokens)
    tall = max(1, min(26, 520 // rows))  # of a cell, in pixels
    page = Canvas(title, WIDTH, MAP_TOP + tall * rows + 94)
    _draw_words(page, now, right)
    losses = [(snapshot.step, snapshot.loss) for snapshot in snapshots]
    chart = Chart(page, 60, MAP_TOP + 10, 300, 190, *zip(*losses, strict=True))
    chart.axes("step", "loss, nats per token")
    chart.line(losses, COLORS[0])
    if chart.drawable([losses[index]]):
        x, y = chart.place(*losses[index])
        page.box(x, chart.top, 0, chart.height, edge=COLORS[1])
        page.dot(x, y, COLORS[1])
    _draw_map(page, now, weights.numpy(), min(60, 410 // columns), tall)
    name = "the mean of the heads" if head is None else f"head {head}"
    text = f"Step {now.step:,} of {snapshots[-1].step:,}, loss {now.loss:.3g}. "
    if now.written:
        text += f"Written: “{_told(now.written)}”. "
    if now.expected:
        text += f"Expected: “{_told(now.expected)}”. "
    text += f"Layer {layer}, {name}"
    if hits:
        text += f": the strongest weight falls on a true word in {sum(hits)} of {len(hits)} rows"
    return Rendering(page.png(), f"{text}.")


def matched(written: Sequence[str], expected: Sequence[str]) -> list[bool]:
    """Return for each word written whether it is one of those expected, in their order."""
    right = [False] * len(written)
    matcher = SequenceMatcher(None, list(written), list(expected), autojunk=False)
    for block in matcher.get_matching_blocks():
        right[block.a : block.a + block.size] = [True] * block.size
    return right


def strongest_hits(weights, true_cells: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each row with a true cell, whether its strongest weight is on one.

    Args:
        weights: shape (query, key).
        true_cells: (query, key) pairs.
    """
    return [
        (query, int(first_largest(weights[query]))) in set(map(tuple, true_cells))
        for query in sorted({query for query, _ in true_cells})
    ]


def _told(tokens: Sequence[str]) -> str:
    return drawable(" ".join(f"{token:.30}" for token in tokens[:30]))


def _draw_words(page: Canvas, now: Snapshot, right: list[bool]) -> None:
    """Draw what was written, each word with a sign, above what was expected."""
    signs = [("✓ ", TINTS[2]) if ok else ("✗ ", TINTS[1]) for ok in right]
    plain = [("", "#F4F4F4")] * len(now.expected)
    rows = [("wrote", now.written, signs), ("expected", now.expected, plain)]
    for y, (name, tokens, looks) in zip((42, 76), rows, strict=True):
        if tokens:
            page.text(70, y + 13, name, 12, anchor="rm")
        x = 80.0
        for i, (token, (sign, tint)) in enumerate(zip(tokens, looks, strict=True)):
            label = fitted(f"{sign}{token}", 12, 150)
            width = drawn_width(label, 12) + 10
            if x + width > WIDTH - 80:
                page.text(x, y + 13, f"and {len(tokens) - i} more", 12, anchor="lm")
                break
            page.box(x, y, width, 26, fill=tint, edge="#888888")
            page.text(x + width / 2, y + 13, label, 12)
            x += width + 4


def _draw_map(page: Canvas, now: Snapshot, weights: np.ndarray, wide: int, tall: int) -> None:
    """Draw the weights as cells, the true ones in a frame, with the words along both sides."""
    rows, columns = weights.shape
    wide = max(wide, 1)
    colors = colormaps[SEQUENTIAL](np.sqrt(np.clip(weights, 0, 1)), bytes=True)[..., :3]
    page.picture(MAP_LEFT, MAP_TOP, wide * columns, tall * rows, np.ascontiguousarray(colors))
    for query, key in now.true_cells:
        page.box(MAP_LEFT + wide * key, MAP_TOP + tall * query, wide, tall, edge=COLORS[1], line=3)
    for i in range(0, rows, math.ceil(13 / tall)):
        y = MAP_TOP + tall * (i + 0.5)
        page.text(MAP_LEFT - 6, y, now.query_tokens[i], 11, anchor="rm", width=90)
    bottom = MAP_TOP + tall * rows
    for i in range(0, columns, math.ceil(15 / wide)):
        x = MAP_LEFT + wide * (i + 0.5)
        page.turned(x, bottom + 6, now.key_tokens[i], 11, end=True, width=80)
    legend = "each row looks at the columns; brighter: more"
    legend += "; framed: the true word" if now.true_cells else ""
    page.text(MAP_LEFT, MAP_TOP - 12, legend, 11, "#444444", "lm")


class TrainingReplay(Explorable):
    """Scrub through a training run, snapshot by snapshot.

    Args:
        snapshots: what a `ReplayRecorder` kept, or your own.
    """

    def __init__(self, snapshots: Sequence[Snapshot] = ()):
        self.snapshots = list(snapshots)
        last = max(len(self.snapshots), 1)
        self.still_values = {"number": [1 + round(i * (last - 1) / 6) for i in range(7)]}
        n_layers, n_heads = self.snapshots[0].weights.shape[:2] if self.snapshots else (1, 1)
        number = ipywidgets.IntSlider(last, 1, last, description="Snapshot")
        heads = [("mean", None), *((str(i), i) for i in range(n_heads))]
        super().__init__(
            {
                "number": number,
                "layer": ipywidgets.ToggleButtons(
                    options=range(n_layers), value=n_layers - 1, description="Layer"
                ),
                "head": ipywidgets.ToggleButtons(options=heads, index=0, description="Head"),
            }
        )
        self.children[0].children += (Player(number, 0.3),)

    def render(self) -> Rendering:
        """Draw the chosen snapshot."""
        if not self.snapshots:
            return say(EMPTY)
        values = self.values
        index = values.pop("number") - 1
        return render_training_replay(self.snapshots, index, **values)
