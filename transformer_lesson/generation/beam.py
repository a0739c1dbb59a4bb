"""Beam search for a batch: the hypotheses of all sentences are rows of one big batch."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.generation.session import DecodingSession, one_of
from transformer_lesson.generation.strategies import Beam, length_normalized


class Candidate(NamedTuple):
    """A hypothesis that one step of a beam search considered.

    Args:
        parent: which candidate of the step before it extends (an index; 0 in the first step).
        token: the id with which it extends it.
        log_probability: of the whole hypothesis, in nats.
        kept: whether it is one of the `width` best.
        finished: whether it was kept and ends in `<eos>`.
    """

    parent: int
    token: int
    log_probability: float
    kept: bool
    finished: bool


Tree = list[list[Candidate]]
"""For each step its candidates, best first: of each running beam the `width` best tokens."""


class Best:
    """The best finished hypothesis of each sentence so far."""

    def __init__(self, ids: Tensor, log_probs: Tensor):
        self.ids, self.log_probs = ids.clone(), log_probs.clone()  # (batch, n), (batch, new)
        self.score = log_probs.new_full((len(ids),), -math.inf)  # (batch,)

    def take(self, scores: Tensor, ids: Tensor, log_probs: Tensor) -> None:
        """Replace a sentence's hypothesis where the best of `scores` is better.

        Args:
            scores: (batch, beam), -inf for what is not finished.
            ids, log_probs: of these hypotheses, (batch * beam, n) and (batch * beam, new).
        """
        score, beam = scores.max(dim=1)  # (batch,)
        row = beam + torch.arange(len(beam), device=beam.device) * scores.size(1)
        better = score > self.score
        self.score = torch.where(better, score, self.score)
        self.ids = torch.where(better[:, None], ids[row], self.ids)
        self.log_probs = torch.where(better[:, None], log_probs[row], self.log_probs)


def search(
    writer: DecodingSession,
    beam: Beam,
    ends: tuple[int, ...],
    max_new_tokens: int,
    with_trees: bool,
) -> tuple[Tensor, Tensor, list[Tree]]:
    """Return each sentence's best ids (batch, n + new), log-probabilities (batch, new), tree.

    A sentence is done when none of its running hypotheses can still win: even if one went on to
    the last step without losing another nat, its normalized score would stay below that of the
    best finished one. So stopping early never changes the result.

    Source: the stopping rule is Tensor2Tensor's (`beam_search.py`).
    """
    batch, n = writer.ids.shape
    ids = torch.nn.functional.pad(writer.ids, (0, max_new_tokens))  # (row, n + new)
    log_probs = torch.zeros(batch, max_new_tokens, device=ids.device)  # (row, new)
    totals = log_probs.new_zeros(batch, 1)  # (batch, beam): sums of log_probs
    best, trees = Best(ids, log_probs), [[] for _ in range(batch)]
    done = torch.zeros(batch, dtype=torch.bool, device=ids.device)
    for step in range(max_new_tokens):
        extended = _extend(writer.next_logits(ids[:, : n + step]), totals, beam.width)
        if with_trees:
            _grow(trees, done, extended, beam.width, ends)
        totals, parents, tokens, added = (x[:, : beam.width] for x in extended)  # (batch, beam)
        rows = _rows(parents, len(ids) // batch)
        ids, log_probs = ids[rows], log_probs[rows]
        ids[:, n + step], log_probs[:, step] = tokens.flatten(), added.flatten()
        if ends:
            ended = one_of(tokens, ends)
            scores = length_normalized(totals, step + 1, beam.length_penalty)
            best.take(scores.masked_fill(~ended, -math.inf), ids, log_probs)
            totals = totals.masked_fill(ended, -math.inf)
            hope = length_normalized(totals.amax(1), max_new_tokens, beam.length_penalty)
            done = best.score >= hope
            if done.all():
                break
        if step < max_new_tokens - 1:
            writer.select(rows)
    unfinished = totals.masked_fill(best.score.isfinite()[:, None], -math.inf)
    best.take(unfinished, ids, log_probs)
    return best.ids, best.log_probs, trees


def _extend(logits: Tensor, totals: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Extend every beam by its `width` best tokens: no other can be among the best of all.

    Returns:
        Sums of log-probabilities, parents, tokens and their own log-probabilities, each
        (batch, beam * token), best first.
    """
    log_probs = logits.log_softmax(dim=-1).view(*totals.shape, -1)  # (batch, beam, vocab_size)
    likeliest = log_probs.topk(min(width, log_probs.size(-1)))  # (batch, beam, token)
    sums = (totals[:, :, None] + likeliest.values).flatten(1)  # (batch, beam * token)
    sums, order = sums.sort(dim=1, descending=True, stable=True)
    tokens = likeliest.indices.flatten(1).gather(1, order)
    added = likeliest.values.flatten(1).gather(1, order)
    return sums, order // likeliest.values.size(-1), tokens, added


def _rows(parents: Tensor, beams: int) -> Tensor:
    """Turn beam numbers within each sentence into rows of the big batch, (batch * beam,)."""
    first = torch.arange(len(parents), device=parents.device)[:, None] * beams  # (batch, 1)
    return (first + parents).flatten()


def _grow(
    trees: list[Tree], done: Tensor, extended: tuple, width: int, ends: tuple[int, ...]
) -> None:
    """Add one step to the tree of each sentence that is not done."""
    columns = [column.tolist() for column in extended[:3]]
    for tree, is_done, *row in zip(trees, done.tolist(), *columns, strict=True):
        if not is_done:
            candidates = enumerate(zip(*row, strict=True))
            tree.append(
                [
                    Candidate(parent, token, total, i < width, i < width and token in ends)
                    for i, (total, parent, token) in candidates
                    if total > -math.inf
                ]
            )
