"""Lessons 03 and 04: attention, masks and heads."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


def _scores_inputs(draw: Draw) -> tuple:
    return draw.normal("batch head query d_head"), draw.normal("batch head key d_head")


def _attention_inputs(draw: Draw) -> tuple:
    Q, K = _scores_inputs(draw)
    mask = None
    if draw.number % 2:
        mask = draw.booleans("batch query key")[:, None]  # (batch, 1, query, key)
        mask[..., -1] = True  # every query keeps at least one key
        if draw.number == 3:
            mask[0, 0, 0] = False  # but one
    return Q, K, draw.normal("batch head key d_value"), mask


def _padding_inputs(draw: Draw) -> tuple:
    pad_id = 3 * (draw.number % 2)
    ids = draw.integers("batch key", 4, 50)
    ids[draw.booleans("batch key")] = pad_id
    ids[:, -1] = 9  # every row keeps a real token
    return ids, pad_id


def _split_inputs(draw: Draw) -> tuple:
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    return draw.normal("batch n d_model"), draw.size("head")


def _multi_head_inputs(draw: Draw) -> tuple:
    x, n_heads = _split_inputs(draw)
    matrices = [draw.normal("d_model d_model") / draw.size("d_model") ** 0.5 for _ in range(4)]
    n = draw.size("n")
    mask = torch.ones(n, n, dtype=torch.bool).tril()[None, None]  # (1, 1, query, key)
    if draw.number == 3:
        mask[..., 0] = False  # padding comes first: the first query sees no key
    return x, *matrices, n_heads, mask if draw.number % 2 else None


def _rows_sum_to_one(answer, inputs: tuple, output: Tensor, weights: Tensor) -> str | None:
    sums, mask = weights.sum(dim=-1), inputs[3]
    if mask is not None:
        sums = sums.masked_fill(~mask.any(dim=-1), 1.0)  # a query without keys has zeros
    if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return None
    return (
        "Each query's weights must sum to 1 over the keys (the last axis). "
        f"Yours sum to between {sums.min():.4g} and {sums.max():.4g}.\n"
        "Which axis does your softmax run over? Is the mask applied before the softmax?"
    )


def _masked_keys_get_nothing(answer, inputs: tuple, output: Tensor, weights: Tensor) -> str | None:
    mask = inputs[3]
    if mask is None:
        return None
    hidden = weights.masked_fill(mask, 0.0)
    if hidden.max() < 1e-6:
        return None
    return (
        f"A key that the mask hides must get weight 0. Yours gives one {hidden.max():.4g}.\n"
        "True means: may attend. Which scores do you replace, and by what?"
    )


def _no_later_key(answer, inputs: tuple, mask: Tensor) -> str | None:
    later = mask[0, 0].triu(diagonal=1).nonzero()
    if len(later) == 0:
        return None
    query, key = later[0].tolist()
    return (
        f"In your mask, query {query} may attend to key {key}, which comes later.\n"
        "True means: may attend."
    )


def _no_future_leak(answer, inputs: tuple, output: Tensor) -> str | None:
    x, mask = inputs[0], inputs[-1]
    if mask is None or x.size(1) < 2:
        return None
    changed = x.clone()
    changed[:, -1] += 1.0
    moved = (answer(changed, *inputs[1:]) - output)[:, :-1].abs().max()
    if moved < 1e-4:
        return None
    return (
        "With a causal mask, changing the last token must not move earlier outputs. "
        f"Yours move by up to {moved:.4g}.\n"
        "Does the mask reach the attention of every head, and which way round is it?"
    )


ATTENTION_EXERCISES = (
    Exercise(
        name="attention_scores",
        reference="transformer_lesson.model.attention:attention_scores",
        make_inputs=_scores_inputs,
        returns={"scores": "batch head query key"},
        hints=(
            "A score is the dot product of one query with one key. All of them at once are one "
            "matrix product.",
            "(query, d_head) times (d_head, key): which two axes of K must change places? Leave "
            "batch and head where they are.",
            "`Q @ K.transpose(-2, -1)`, divided by the square root of d_head = `Q.size(-1)`.",
        ),
    ),
    Exercise(
        name="scaled_dot_product_attention",
        reference="transformer_lesson.model.attention:scaled_dot_product_attention",
        make_inputs=_attention_inputs,
        returns={"output": "batch head query d_value", "weights": "batch head query key"},
        hints=(
            "Three steps: scores, softmax, weighted sum of the values. The mask acts between "
            "the first two.",
            "Each query spreads a total of 1 over the keys: softmax over the last axis. A hidden "
            "key gets the lowest score there is before it. And a query whose keys are all hidden?",
            "`scores.masked_fill(~mask, torch.finfo(scores.dtype).min)` hides where the mask is "
            "False; minus infinity would give NaN where it is False for every key. After "
            "`.softmax(dim=-1)` such a row needs `.masked_fill(~mask, 0.0)`. Return "
            "`weights @ V, weights`.",
        ),
        helpers=("transformer_lesson.model.attention:masked_softmax",),
        invariants=(_rows_sum_to_one, _masked_keys_get_nothing),
    ),
    Exercise(
        name="causal_mask",
        reference="transformer_lesson.model.masks:causal_mask",
        make_inputs=lambda draw: (draw.size("n"),),
        returns={"mask": "batch head query key"},
        hints=(
            "Rows are queries, columns are keys. Row i is True for columns 0 to i.",
            "That is a lower triangle with its diagonal: `torch.tril`. Make it boolean, and give "
            "it two leading axes of size 1 that broadcast over batch and head.",
            "`torch.ones(n, n, dtype=torch.bool).tril()[None, None]`",
        ),
        invariants=(_no_later_key,),
    ),
    Exercise(
        name="padding_mask",
        reference="transformer_lesson.model.masks:padding_mask",
        make_inputs=_padding_inputs,
        returns={"mask": "batch head query key"},
        hints=(
            "True where a real token stands: one comparison with `pad_id` says it.",
            "The scores have shape (batch, head, query, key). Padding hides keys, the same ones "
            "for every head and every query.",
            "`(ids != pad_id)` has shape (batch, key). Put two axes of size 1 in the middle: "
            "`[:, None, None, :]`.",
        ),
    ),
    Exercise(
        name="split_heads",
        reference="transformer_lesson.model.attention:split_heads",
        make_inputs=_split_inputs,
        returns={"heads": "batch head n d_head"},
        hints=(
            "Each head gets d_model / n_heads numbers of every token. Which numbers of token 0 "
            "does head 0 get?",
            "First cut the last axis into (head, d_head), so that no number leaves its token. "
            "Only then bring the head axis forward.",
            "`x.view(batch, n, n_heads, d_head).transpose(1, 2)`. Asking `view` for (batch, "
            "n_heads, n, d_head) at once has the right shape and mixes the tokens.",
        ),
    ),
    Exercise(
        name="merge_heads",
        reference="transformer_lesson.model.attention:merge_heads",
        make_inputs=lambda draw: (draw.normal("batch head n d_head"),),
        returns={"merged": "batch n d_model"},
        hints=(
            "This undoes `split_heads`, so it takes the same steps backwards.",
            "First bring the token axis back in front of the head axis, then join (head, d_head).",
            "`x.transpose(1, 2)` has shape (batch, n, head, d_head). `.flatten(2)` joins the last "
            "two axes; `.view` would refuse here, because a transpose moves no numbers.",
        ),
    ),
    Exercise(
        name="multi_head_attention",
        reference="transformer_lesson.model.attention:multi_head_attention",
        make_inputs=_multi_head_inputs,
        returns={"output": "batch n d_model"},
        hints=(
            "Project, split into heads, attend, merge, project again. You have written all the "
            "parts.",
            "`x @ W_Q` holds the queries of all heads side by side; `split_heads` parts them. "
            "The same for keys and values.",
            "`heads, weights = scaled_dot_product_attention(Q, K, V, mask)` works on all heads "
            "at once. Then `merge_heads(heads) @ W_O`.",
        ),
        invariants=(_no_future_leak,),
    ),
)
