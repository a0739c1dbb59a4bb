"""Scrub through a training run: the loss, what the model wrote, and where it looked."""

import base64
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import traitlets
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.explorables.live_curves import number
from transformer_lesson.files import printable
from transformer_lesson.generation import generate
from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer, words

LONGEST = 30  # words of a translation: an untrained model may never stop
SIDE = 48  # most tokens on a side of the map
LARGEST = 700_000  # characters of weights, so that a page stays below 1 MB
NO_NUMBER = 65_535  # encodes NaN and infinite weights for the page

if TYPE_CHECKING:
    from transformer_lesson.training import StepReport


def cross_attention(
    model: EncoderDecoderTransformer,
    source_ids: Int[Tensor, "batch source"],
    target_ids: Int[Tensor, "batch target"],
) -> Float[Tensor, "layer batch head target source"]:
    """Return the cross-attention weights of each layer.

    Row t belongs to the token that *follows* `target_ids[:, t]`: the model looked to choose it.
    """
    device = model.projection.weight.device
    with evaluating(model), torch.no_grad(), record(model) as run:
        model(source_ids.to(device), target_ids.to(device))
    weights = [value for name, value in run.items() if name.endswith("cross_attention.weights")]
    return torch.stack(weights).float().cpu()


class Snapshot(NamedTuple):
    """A model after one step of its training.

    Args:
        step: from 1.
        loss: mean training loss since the previous snapshot, in nats per token.
        weights: attention weights of any kind, from any model.
        query_tokens, key_tokens: the words that look, and those that are looked at.
        true_cells: (query, key) pairs that should be strong, if known.
        written: what the model wrote at this step, if it writes.
        expected: what it should have written.
        framed: the name of the true cells, around which the picture draws frames.
    """

    step: int
    loss: float
    weights: Float[Tensor, "layer head query key"]
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    true_cells: Sequence[tuple[int, int]] = ()
    written: Sequence[str] = ()
    expected: Sequence[str] = ()
    framed: str = "a true word"


class ReplayRecorder:
    """Takes a `Snapshot` of a translator every few steps while it trains.

        recorder = ReplayRecorder(tokenizer, pair)
        train(model, batches, config, on_step=recorder)
        TrainingReplay(recorder.snapshots)

    A snapshot takes about as long as one training step: the model translates the sentence and then
    reads the right translation, so that the rows of its cross-attention are the same words in all
    snapshots. A word's row shows where the model looks to choose this word.

    Args:
        tokenizer: the model's, one for both languages.
        pair: the sentence to follow. Its alignment is by words, so it is ignored if the tokenizer
            uses smaller pieces.
        every: steps between snapshots; the first is taken after step 1.

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
        """Receive `train`'s report after a step."""
        self._losses.append(report.loss)
        if report.step == 1 or report.step % self.every == 0:
            loss = sum(self._losses) / len(self._losses)
            self.snapshots.append(self._snapshot(report.model, report.step, loss))
            self._losses.clear()

    def _snapshot(self, model, step: int, loss: float) -> Snapshot:
        longest = min(LONGEST, 2 * len(self._target), model.config.max_len - 1)
        output = generate(model, self._source, longest).ids[0]
        source, target = torch.tensor([self._source]), torch.tensor([self._target[:-1]])
        weights = cross_attention(model, source, target)
        return Snapshot(
            step,
            loss,
            weights[:, 0],  # (layer, head, target, source)
            self._tokens(self._target[1:]),
            self._tokens(self._source),
            self._true_cells,
            self._tokens(output),
            self._tokens(self._target[1:]),
        )

    def _tokens(self, ids: list[int]) -> list[str]:
        return [self.tokenizer.token(id_) for id_ in ids]


def matched(written: Sequence[str], expected: Sequence[str]) -> list[bool]:
    """Return for each written word whether it matches an expected one, in order."""
    right = [False] * len(written)
    matcher = SequenceMatcher(None, list(written), list(expected), autojunk=False)
    for block in matcher.get_matching_blocks():
        right[block.a : block.a + block.size] = [True] * block.size
    return right


def as_sent(snapshot: Snapshot) -> dict[str, object]:
    """Return a snapshot in the form sent to a page.

    Weights are two-byte integers, 10,000 for 1, in base64: six times shorter than decimal text and
    as precise as displayed.
    """
    units = np.rint(snapshot.weights.detach().cpu().double().numpy() * 10_000)
    units = np.nan_to_num(units, nan=NO_NUMBER).clip(0, NO_NUMBER).astype("<u2")
    names = ["query_tokens", "key_tokens", "written", "expected"]
    tokens = {name: [printable(token, 60) for token in getattr(snapshot, name)] for name in names}
    return tokens | {
        "step": snapshot.step,
        "loss": number(snapshot.loss),
        "shape": list(units.shape),
        "weights": base64.b64encode(units.tobytes()).decode(),
        "true_cells": [list(cell) for cell in snapshot.true_cells],
        "framed": printable(snapshot.framed, 60),
        "right": matched(snapshot.written, snapshot.expected),
    }


def check_snapshot(snapshot: Snapshot) -> None:
    """Reject a snapshot that the picture cannot show.

    Raises:
        ValueError: tokens that do not fit the weights or are too many, or a true cell outside them.
    """
    sides = len(snapshot.query_tokens), len(snapshot.key_tokens)
    if tuple(snapshot.weights.shape[2:]) != sides:
        raise ValueError(
            f"weights of shape {tuple(snapshot.weights.shape)} do not fit {sides[0]} query and "
            f"{sides[1]} key tokens: their shape is (layer, head, query, key)."
        )
    if max(sides) > SIDE:
        raise ValueError(
            f"a snapshot of {sides[0]} by {sides[1]} tokens is too large for the picture, which "
            f"has room for {SIDE} a side: record a shorter text."
        )
    for query, key in snapshot.true_cells:
        if not (0 <= query < sides[0] and 0 <= key < sides[1]):
            raise ValueError(
                f"the true cell ({query}, {key}) lies outside of the {sides[0]} rows and "
                f"{sides[1]} columns: they are counted from 0."
            )


def thinned(snapshots: Sequence[dict]) -> Sequence[dict]:
    """Return some of many snapshots, evenly spaced, so that their weights fit into `LARGEST`."""
    letters = sum(len(snapshot["weights"]) for snapshot in snapshots)
    room = max(2, len(snapshots) * LARGEST // max(letters, 1))
    if len(snapshots) <= room:
        return snapshots
    last = len(snapshots) - 1
    return [snapshots[round(i * last / (room - 1))] for i in range(room)]


class TrainingReplay(PageExplorable):
    """Scrub through a training run, snapshot by snapshot.

    Args:
        snapshots: from a `ReplayRecorder`, or your own. If there are too many, some are left out,
            but never the first and the last.
        number: the one shown, from 1; by default the last.
        layer: from 0, clipped to the last; by default the last.
        head: from 0; `None` for the mean over the layer's heads.
        each: draw a small map of every head, too.

    Raises:
        ValueError: a snapshot that the picture cannot show.
    """

    snapshots = traitlets.List().tag(sync=True, fact=True)
    number = traitlets.Int(1, min=1).tag(sync=True)
    layer = traitlets.Int(0, min=0).tag(sync=True)
    head = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    each = traitlets.Bool(True).tag(sync=True)

    def __init__(self, snapshots: Sequence[Snapshot] = (), **values):
        for snapshot in snapshots:
            check_snapshot(snapshot)
        sent = thinned([as_sent(snapshot) for snapshot in snapshots])
        if sent:
            values = {"number": len(sent), "layer": sent[0]["shape"][0] - 1} | values
        super().__init__(snapshots=sent, **values)
