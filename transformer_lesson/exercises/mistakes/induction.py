"""Mistakes in lesson 11: the wrong diagonal, the wrong queries, the wrong axis."""

import torch

from transformer_lesson.exercises.specification import Mistake


def on_diagonal(weights, back, skip):
    """The mean weight `back` tokens back, without the first `skip` queries of that diagonal."""
    return weights.diagonal(-back, dim1=-2, dim2=-1)[..., skip:].mean(dim=(0, 2))


def score_by_loops(weights, period):
    """The induction score, one query at a time."""
    n = weights.size(-1)
    cells = [weights[:, :, i, i - period + 1] for i in range(period, n)]  # (batch, head) each
    return torch.stack(cells).mean(dim=(0, 1))


def zeroed(place):
    """An ablation of a copy; `place(copy, head)` is what it sets to zero."""

    def ablate(head_outputs, head):
        copy = head_outputs.clone()
        place(copy, head).zero_()
        return copy

    return ablate


def _only_this_head(head_outputs, head):
    kept = torch.zeros_like(head_outputs)
    kept[:, head] = head_outputs[:, head]
    return kept


def _in_place(head_outputs, head):
    head_outputs[:, head] = 0.0
    return head_outputs


def _its_mean(head_outputs, head):
    copy = head_outputs.clone()
    copy[:, head] = head_outputs[:, head].mean(dim=-2, keepdim=True)
    return copy


def _cut_out(head_outputs, head):
    return torch.cat([head_outputs[:, :head], head_outputs[:, head + 1 :]], dim=1)


def _minus_infinity(head_outputs, head):
    copy = head_outputs.clone()
    copy[:, head] = -torch.inf
    return copy


INDUCTION_MISTAKES = {
    "induction_score": (
        Mistake(
            "the duplicate-token score",
            "You look at where the same token stood before, `period` back. An induction head looks "
            "one further on, at what came after it, because that is what comes next.",
            lambda weights, period: on_diagonal(weights, period, 0),
        ),
        Mistake(
            "the token before the earlier occurrence",
            "You look `period + 1` back, at what stood before the earlier occurrence. What came "
            "after it stands one to the other side: is it period + 1 or period - 1?",
            lambda weights, period: on_diagonal(weights, period + 1, 0),
        ),
        Mistake(
            "one query too many",
            "The diagonal begins at query period - 1, whose token has not been seen before: key 0 "
            "is where the sequence begins, not what followed anything. Leave that query out.",
            lambda weights, period: on_diagonal(weights, period - 1, 0),
        ),
        Mistake(
            "division by all queries",
            "You divide by all n queries, but those of the first period cannot score, so that even "
            "a perfect head stays below 1. Divide by the queries that can.",
            lambda weights, period: (
                on_diagonal(weights, period - 1, 1) * (1 - period / weights.size(-1))
            ),
        ),
        Mistake(
            "the diagonal above the main one",
            "Those cells are weights on later tokens, which the causal mask sets to zero. In "
            "`diagonal` a positive offset goes to the right. Which sign do you need?",
            lambda weights, period: on_diagonal(weights, 1 - period, 1),
        ),
        Mistake(
            "the previous-token score",
            "You measure the weight on the token before the query. That is what a head of the "
            "first layer does. Where is the key that followed the earlier occurrence?",
            lambda weights, period: on_diagonal(weights, 1, 0),
        ),
        Mistake(
            "one number for all heads",
            "The mean runs over the heads too, so a perfect head and three idle ones look like "
            "four poor ones. Average over batch and queries only.",
            lambda weights, period: on_diagonal(weights, period - 1, 1).mean(),
        ),
        Mistake(
            "the best query instead of the mean",
            "A single query may look at the right place by chance. Take the mean over the queries, "
            "not their maximum.",
            lambda weights, period: (
                weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].amax(-1).mean(0)
            ),
        ),
        Mistake(
            "the sum instead of the mean",
            "A sum over batch and queries grows with the length of the text and passes 1. Weights "
            "are shares: what does each query give on average?",
            lambda weights, period: weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].sum(
                dim=(0, 2)
            ),
        ),
    ),
    "ablate_head": (
        Mistake(
            "an ablation of the argument itself",
            "The numbers are right, but they are written into the caller's tensor, and the next "
            "ablation finds a head missing that nobody took. Make a copy first.",
            _in_place,
        ),
        Mistake(
            "a sentence instead of a head",
            "Your index counts along the batch, so a whole sentence loses all its heads. Which "
            "axis of (batch, head, n, d_head) are the heads?",
            zeroed(lambda copy, head: copy[head]),
        ),
        Mistake(
            "a position instead of a head",
            "Your index counts along n: one token loses what all heads have read. Which axis of "
            "(batch, head, n, d_head) are the heads?",
            zeroed(lambda copy, head: copy[:, :, head]),
        ),
        Mistake(
            "one number of every head",
            "Your index counts along d_head, the last axis: every head loses one of its numbers, "
            "and none is gone. Which axis of (batch, head, n, d_head) are the heads?",
            zeroed(lambda copy, head: copy[..., head]),
        ),
        Mistake(
            "all heads but this one taken away",
            "You keep the head that should go and lose all the others. That is a good experiment "
            "too (is this head enough?), but another one.",
            _only_this_head,
        ),
        Mistake(
            "the mean over the text",
            "Replacing a head by its mean is mean ablation: it takes away what the head says about "
            "this position and keeps what it always says. Here it is zero.",
            _its_mean,
        ),
        Mistake(
            "one head fewer",
            "You cut the head out, so the shape changes, and W_O finds the wrong numbers under its "
            "rows. The slice must stay, filled with zeros.",
            _cut_out,
        ),
        Mistake(
            "minus infinity for zero",
            "Minus infinity takes a score away before softmax. These are outputs: they are added "
            "up, and an infinity spreads to everything. What adds nothing?",
            _minus_infinity,
        ),
    ),
}
