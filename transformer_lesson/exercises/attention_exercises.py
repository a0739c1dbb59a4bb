"""Lesson 04: heads."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


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
