"""Notes taken while a translator trains, so that the run can be looked at again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.corpora.pairs import Pair
from transformer_lesson.explorables.translation import LONGEST, cross_attention
from transformer_lesson.generation import generate
from transformer_lesson.tokenizer import Tokenizer, words

if TYPE_CHECKING:
    from transformer_lesson.training import StepReport


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
        _, weights = cross_attention(model, source, target)
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
