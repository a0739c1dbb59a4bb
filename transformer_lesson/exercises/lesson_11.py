"""Lesson 11: a number for what a head looks at, and a model without one of its heads."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise


def _score_inputs(draw: Draw) -> tuple:
    """Periods from 1 to n - 1; one sentence, one head; with and without a causal mask."""
    longest = None
    if draw.small:
        longest = 1 + max(draw.small[1:])
        draw.sizes |= {"head": 1, "n": longest + 2}
    elif draw.number == 5:
        draw.sizes |= {"batch": 1, "n": 29}  # longer than the lesson's own period
    elif draw.number == 6:
        draw.sizes["head"] = 1
    n = draw.size("n", at_least=7)
    scores = 3 * draw.normal("batch head n n")
    if draw.number not in (3, 6):
        scores = scores.masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    if draw.number == 5:  # queries and keys have changed places in memory
        weights = weights.mT.contiguous().mT
    return weights, min(draw.one_of((3, n // 2, 2, n - 2, n - 1, 5, 4, 1)), longest or n)


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


@exercise(
    reference="transformer_lesson.interpretability.head_scores:induction_score",
    make_inputs=_score_inputs,
    draws=8,
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
)
def induction_score(weights, period):
    """Return each head's mean weight on what followed the query's token one period ago."""
    n = weights.size(-1)
    weights = choose(weights, above_diagonal=weights.mT, softmax_again=weights.softmax(-1))
    period = choose(period, half_the_text=n // 2, always_24=24)
    back = choose(
        period - 1,
        same_token=period,
        token_before=period + 1,
        two_after=max(period - 2, 0),
        previous_token=1,
        itself=0,
    )
    first = choose(
        period,
        one_query_more=period - 1,
        one_query_fewer=period + 1,
        all_queries=0,
        queries_from_1=1,
    )
    queries = torch.arange(n)[first:]
    queries = choose(
        queries,
        queries[queries >= back],  # without those whose key would count from the end
        one_period_alone=queries[:period],
        last_query_alone=queries[-1:],
        first_query_alone=queries[:1],
        without_the_last=queries[:-1],
        nothing_for_period_1=queries[: n if period > 1 else 0],
    )
    return _mean_of_heads(_looked_at(weights, queries, back, period), n, period)


def _looked_at(weights, queries, back, period):
    """Return each query's weight on its key, shape (batch, head, query)."""
    rows = weights[:, :, queries]
    behind = queries[:, None] - back - torch.arange(rows.size(-1))  # how far behind the right key
    return choose(
        weights[:, :, queries, queries - back],
        axes_of_diagonal_missing=weights.diagonal(-back)[..., 1:],
        all_occurrences=(rows * ((behind >= 0) & (behind % period == 0))).sum(-1),
        all_keys_up_to_it=(rows * (behind >= 0)).sum(-1),
        mean_over_keys=rows.mean(-1),
        largest_weight=rows.amax(-1),
        share_of_hits=(rows.argmax(-1) == queries - back).float(),
        fixed_key=rows[..., period - 1],
    )


def _mean_of_heads(looked_at, n, period):
    """Return one number for each head."""
    of_sentences = choose(
        looked_at.mean(-1),
        best_query=looked_at.amax(-1),
        median_query=looked_at.median(-1).values,
        sum=looked_at.sum(-1),
        sum_of_queries=looked_at.sum(-1),
        divided_by_all=looked_at.sum(-1) / n,
        divided_by_period=looked_at.sum(-1) / period,
        divided_by_one_more=looked_at.sum(-1) / (n - period + 1),
        divided_by_one_fewer=looked_at.sum(-1) / (n - period - 1),
    )  # (batch, head)
    score = choose(
        of_sentences.mean(0),
        sum=of_sentences.sum(0),
        sum_of_sentences=of_sentences.sum(0),
        best_sentence=of_sentences.amax(0),
        first_sentence=of_sentences[0],
        each_sentence=of_sentences,
        all_heads_together=of_sentences.mean(),
        best_of_means=looked_at.mean(0).amax(-1),
        over_heads=of_sentences.mean(1),
        each_query=looked_at.mean(0),
    )
    return choose(
        score,
        best_head=score.max(),
        axes_kept=score[None, :, None],
        squeezed=score.squeeze(),
    )


def _ablate_inputs(draw: Draw) -> tuple:
    """The first head, the last and others; one sentence, one head, one token."""
    if draw.number in (4, 5, 6):
        draw.sizes[("batch", "head", "n")[draw.number - 4]] = 1
    head_outputs = draw.normal("batch head n d_head")
    n_heads = draw.size("head")
    if draw.number == 7:  # as split_heads leaves it: heads and tokens have changed places in memory
        head_outputs = head_outputs.transpose(1, 2).contiguous().transpose(1, 2)
    return head_outputs, draw.one_of((1, n_heads - 1, 0, 1, n_heads // 2, 0, 1, 1)) % n_heads


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


@exercise(
    reference="transformer_lesson.interpretability.interventions:ablate_head",
    make_inputs=_ablate_inputs,
    draws=8,
    returns={"ablated": "batch head n d_head"},
    hints=(
        "The result is the same tensor with one slice of it zero. Along which axis do heads lie?",
        "The caller still needs its own numbers, so work on a copy: `head_outputs.clone()`.",
        "`ablated[:, head] = 0` sets one head of every sentence, at every position.",
    ),
    invariants=(_only_that_head_changes,),
)
def ablate_head(head_outputs, head):
    """Return a copy in which one head's numbers are zero."""
    ablated = choose(head_outputs.clone(), in_place=head_outputs)
    n_heads = head_outputs.size(1)
    number = choose(
        head,
        next_head=head + 1,
        head_before=head - 1,
        always_first=0,
        always_last=n_heads - 1,
    )
    others = [other for other in range(n_heads) if other != number]
    index = [slice(None)] * 4
    index[0] = choose(index[0], first_sentence=0)
    index[2] = choose(index[2], first_position=0, last_position=-1)
    index[3] = choose(index[3], first_number=0)
    index[choose(1, sentence=0, position=2, one_number=3)] = choose(
        number,
        other_heads=others,
        heads_up_to_it=slice(number + 1),
        heads_before_it=slice(number),
        heads_from_it_on=slice(number, None),
        heads_after_it=slice(number + 1, None),
        everything=slice(None),
        nothing=slice(0),
    )
    place = tuple(index)
    ablated[place] = _replacement(ablated[place], ablated)
    return _as_result(ablated, head_outputs, number, others)


def _replacement(removed, all_heads):
    """Return what stands in the place of the numbers that were removed."""
    return choose(
        torch.zeros_like(removed),
        mean_over_text=removed.mean(-2, keepdim=True),
        mean_over_sentences=removed.mean(0, keepdim=True),
        mean_over_both=removed.mean((0, -2), keepdim=True),
        one_mean=removed.mean(),
        mean_of_d_head=removed.mean(-1, keepdim=True),
        mean_of_heads=all_heads.mean(1),
        minus_infinity=torch.full_like(removed, -math.inf),
        not_a_number=torch.full_like(removed, math.nan),
        ones=torch.ones_like(removed),
        negative=-removed,
        halved=removed / 2,
        other_sentences=removed.roll(1, 0),
    )


def _as_result(ablated, head_outputs, number, others):
    """Return the function's result."""
    n_heads = head_outputs.size(1)
    ablated = choose(
        ablated,
        others_scaled=ablated * n_heads / choose(n_heads - 1, max(n_heads - 1, 1)),
        normalized=F.normalize(ablated, dim=-1),
    )
    return choose(
        ablated,
        cut_out=ablated[:, others],
        head_alone=head_outputs[:, number],
        zeros_alone=ablated[:, number],
        merged=ablated.transpose(1, 2).flatten(2),
        tokens_before_heads=ablated.transpose(1, 2),
        summed=ablated.sum(1),
        nothing_returned=None,
        squeezed=ablated.squeeze(),
    )
