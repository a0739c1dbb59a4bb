"""Lesson 11: a number for what a head looks at, and a model without one of its heads."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


def _score_inputs(draw: Draw) -> tuple:
    n = draw.size("n", at_least=5)
    scores = 2 * draw.normal("batch head n n")
    weights = scores.masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf).softmax(dim=-1)
    return weights, (2, n // 2, 3, n - 2, n - 1)[draw.number]


def _ablate_inputs(draw: Draw) -> tuple:
    head_outputs = draw.normal("batch head n d_head")
    return head_outputs, (draw.number + 1) % draw.size("head")


def _perfect_head_scores_1(answer, inputs: tuple, score: Tensor) -> str | None:
    weights, period = inputs
    n, perfect = weights.size(-1), torch.zeros_like(weights)
    for query in range(period, n):
        perfect[..., query, query - period + 1] = 1.0
    perfect[..., :period, 0] = 1.0  # these have seen no token twice
    yours = answer(perfect, period)
    if torch.allclose(yours.double(), torch.ones(weights.size(1)).double(), atol=1e-5):
        return None
    return (
        f"A head that always looks at what followed its token {period} tokens ago must score 1 "
        f"(n = {n}, period = {period}). Yours gives it {float(yours.reshape(-1)[0]):.3g}.\n"
        "Which key is that for query i, and from which query on does it exist?"
    )


def _only_that_head_changes(answer, inputs: tuple, ablated: Tensor) -> str | None:
    head_outputs, head = inputs
    others = [i for i in range(head_outputs.size(1)) if i != head]
    if ablated[:, head].count_nonzero():
        return f"Head {head} must be zero everywhere. Yours still has numbers in it."
    if not torch.allclose(ablated[:, others].double(), head_outputs[:, others].double()):
        return (
            f"Only head {head} is taken away; the others keep their numbers. Yours changes them.\n"
            "Which axis of (batch, head, n, d_head) does your index count along?"
        )
    return None


INDUCTION_EXERCISES = (
    Exercise(
        name="induction_score",
        reference="transformer_lesson.interpretability.head_scores:induction_score",
        make_inputs=_score_inputs,
        returns={"score": "head"},
        helpers=("transformer_lesson.interpretability.head_scores:_mean_weight_back",),
        hints=(
            "Query i stands on a token that stood at i - period before. What came after it then? "
            "That key's weight is what you want, for every i from `period` on.",
            "The keys lie on a diagonal, `period - 1` below the main one: "
            "`weights.diagonal(1 - period, dim1=-2, dim2=-1)`. Its first query is period - 1, "
            "which has seen nothing twice.",
            "Leave out that first entry, `[..., 1:]`, and take the mean over batch and queries: "
            "`.mean(dim=(0, 2))` leaves one number per head.",
        ),
        invariants=(_perfect_head_scores_1,),
    ),
    Exercise(
        name="ablate_head",
        reference="transformer_lesson.interpretability.interventions:ablate_head",
        make_inputs=_ablate_inputs,
        returns={"ablated": "batch head n d_head"},
        hints=(
            "The result is the same tensor with one slice of it zero. Along which axis do heads "
            "lie?",
            "The caller still needs its own numbers, so work on a copy: `head_outputs.clone()`.",
            "`ablated[:, head] = 0` sets one head of every sentence, at every position.",
        ),
        invariants=(_only_that_head_changes,),
    ),
)
