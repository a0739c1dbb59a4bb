"""Lesson 04: heads."""

import math

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.model.positions import sinusoidal_encoding

STEPS = (1, 3, -1, 2, 1, -4)
BASES = (10.0, 10000.0, 30.0, 7.0, 10.0, 10.0)
"""Draw by draw: how many tokens back, and the base of the encoding."""


def _look_back_inputs(draw: Draw) -> tuple:
    """Steps in both directions, and a base of its own in most draws; one pair of numbers."""
    if draw.number == 4 and not draw.small:
        draw.sizes["pair"] = 1
    draw.sizes["d_model"] = 2 * draw.size("pair")
    return draw.sizes["d_model"], draw.one_of(STEPS), draw.one_of(BASES)


def _finds_the_place(answer, inputs: tuple, W_Q: Tensor) -> str | None:
    d_model, steps, base = inputs
    places = sinusoidal_encoding(24, d_model, base).double()
    position = 12
    query, wanted = places[position] @ W_Q.double(), places[position - steps]
    if torch.allclose(query, wanted, atol=1e-4):
        return None
    nearest = int((places - query).norm(dim=-1).argmin())
    return (
        f"With steps = {steps}, the query of position {position} must be the encoding of position "
        f"{position - steps}. Of positions 0 to 23, yours is nearest to that of {nearest}.\n"
        "Each pair of a sine and a cosine turns by steps / base^(2i / d_model)."
    )


@exercise(
    reference="transformer_lesson.interpretability.programmed_heads:look_back_head",
    make_inputs=_look_back_inputs,
    draws=6,
    returns={"W_Q": "d_model d_model"},
    hints=(
        "Columns 2i and 2i + 1 of an encoding are sin(a) and cos(a), with a = pos / "
        "base^(2i / d_model). Which two formulas give sin(a - b) and cos(a - b)?",
        "sin(a - b) = sin(a) cos(b) - cos(a) sin(b) and cos(a - b) = cos(a) cos(b) + sin(a) "
        "sin(b). Row and column 2i and 2i + 1 of W_Q hold these factors; all else is 0.",
        "For each even column e, with b = `steps / base ** (e / d_model)`: `W_Q[e, e]` and "
        "`W_Q[e + 1, e + 1]` are cos(b), `W_Q[e, e + 1]` is sin(b), `W_Q[e + 1, e]` is -sin(b).",
    ),
    invariants=(_finds_the_place,),
)
def look_back_head(d_model, steps, base=10000.0):
    """Return W_Q that turns the encoding of each position into that of `steps` before."""
    base = choose(base, always_10000=10000.0)
    steps = choose(steps, always_one=1, whole_turns=2 * math.pi * steps)
    even = torch.arange(0, d_model, 2).double()
    exponent = choose(
        even / d_model,
        i_alone=even / 2 / d_model,
        same_angle=torch.zeros_like(even),
        no_width=even,
    )
    angle = choose(1, looks_ahead=-1) * steps * base**-exponent
    angle = choose(angle, degrees=torch.deg2rad(angle), slow_turn_fast=angle.flip(0))
    cosine, sine = angle.cos(), angle.sin()
    blocks = torch.stack(
        [
            choose(cosine, exchanged=sine, sines_missing=cosine),
            choose(sine, exchanged=cosine, sines_missing=0 * sine),
            choose(-sine, sign_missing=sine, exchanged=cosine, sines_missing=0 * sine),
            choose(cosine, exchanged=-sine, second_missing=0 * cosine),
        ]
    )
    W_Q = choose(
        torch.block_diag(*blocks.T.reshape(-1, 2, 2)),
        halves=_halves(blocks),
        numbers_moved=torch.eye(d_model).roll(int(steps), 0).double(),
        first_pair_alone=torch.block_diag(blocks[:, 0].view(2, 2), torch.eye(d_model - 2)),
    )
    return choose(W_Q, scaled=W_Q / math.sqrt(d_model), batch_axis=W_Q[None]).float()


def _halves(blocks):
    """Return the matrix for an encoding whose sines stand in front of all its cosines."""
    rows = blocks.view(2, 2, -1)
    return torch.cat([torch.cat([one.diag() for one in row], dim=1) for row in rows])


def _model_width(draw: Draw) -> int:
    """Fix d_model as so many heads, each so wide."""
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    return draw.sizes["d_model"]


def _split_inputs(draw: Draw) -> tuple:
    """One head, heads of one number, one token, one sentence; numbers that lie elsewhere."""
    single = draw.one_of(("", "batch", "", "n", "head", "d_head"))
    if single:
        draw.sizes[single] = 1
    _model_width(draw)
    x = draw.normal("batch n d_model")
    if draw.number == 2:  # in double precision, and x lies in memory as its transpose
        x = x.double().mT.contiguous().mT
    return x, draw.size("head")


@exercise(
    reference="transformer_lesson.model.attention:split_heads",
    make_inputs=_split_inputs,
    draws=6,
    returns={"heads": "batch head n d_head"},
    hints=(
        "Each head gets d_model / n_heads numbers of every token. Which numbers of token 0 "
        "does head 0 get?",
        "First cut the last axis into (head, d_head), so that no number leaves its token. "
        "Only then bring the head axis forward.",
        "`x.view(batch, n, n_heads, d_head).transpose(1, 2)`. Asking `view` for (batch, "
        "n_heads, n, d_head) at once has the right shape and mixes the tokens.",
    ),
)
def split_heads(x, n_heads):
    """Return the numbers that each head gets of every token, (batch, head, n, d_head)."""
    batch, n, d_model = x.shape
    d_head = d_model // n_heads
    x = choose(x, tokens_turned=x.flip(1))
    cut = choose(
        x.reshape(batch, n, n_heads, d_head),
        dealt_out=x.reshape(batch, n, d_head, n_heads).mT,
        sizes_exchanged=x.reshape(batch, n, d_head, n_heads),
        tokens_in_the_last_axis=x.mT.reshape(batch, n, n_heads, d_head),
        last_head_first=x.reshape(batch, n, n_heads, d_head).flip(2),
        whole_tokens=x[:, :, None].expand(batch, n, n_heads, d_model),
    )
    heads = choose(
        cut.transpose(1, 2),
        no_transpose=x.reshape(batch, n_heads, n, d_head),
        behind_the_tokens=cut,
        in_front_of_the_batch=cut.permute(2, 0, 1, 3),
        tokens_in_front=cut.transpose(0, 1).transpose(1, 2),
        numbers_first=cut.permute(0, 2, 3, 1),
        numbers_in_front=cut.permute(0, 3, 1, 2),
        numbers_and_heads_exchanged=cut.mT,
    )
    return choose(
        heads,
        joined_with_the_batch=heads.flatten(0, 1),
        listed=list(heads.unbind(1)),
        first_head=heads[:, 0],
        squeezed=heads.squeeze(),
        squeezed_batch=heads.squeeze(0),
        scaled=heads / math.sqrt(d_head),
    )


def _merge_inputs(draw: Draw) -> tuple:
    single = draw.one_of(("", "batch", "", "n", "head", "d_head"))
    if single:
        draw.sizes[single] = 1
    if draw.number == 2:  # in double precision, and as split_heads leaves it in memory
        return (draw.normal("batch n head d_head").double().transpose(1, 2),)
    return (draw.normal("batch head n d_head"),)


@exercise(
    reference="transformer_lesson.model.attention:merge_heads",
    make_inputs=_merge_inputs,
    draws=6,
    returns={"merged": "batch n d_model"},
    hints=(
        "This undoes `split_heads`, so it takes the same steps backwards.",
        "First bring the token axis back in front of the head axis, then join (head, d_head).",
        "`x.transpose(1, 2)` has shape (batch, n, head, d_head). `.flatten(2)` joins the last "
        "two axes; `.view` would refuse here, because a transpose moves no numbers.",
    ),
)
def merge_heads(x):
    """Return the heads' numbers side by side, shape (batch, n, d_model)."""
    batch, n_heads, n, d_head = x.shape
    x = choose(x, last_head_first=x.flip(1))
    side_by_side = choose(
        x.transpose(1, 2),
        number_by_number=x.permute(0, 2, 3, 1),
        d_head_and_tokens_exchanged=x.mT,
        all_axes_turned=x.permute(3, 2, 1, 0),
        batch_and_tokens_exchanged=x.permute(2, 0, 1, 3),
    )
    merged = choose(
        side_by_side.flatten(2),
        no_transpose=x.reshape(batch, n, n_heads * d_head),
        batch_and_heads_exchanged=x.transpose(0, 1).reshape(batch, n, n_heads * d_head),
        not_joined=side_by_side,
        joined_with_tokens=side_by_side.flatten(1, 2),
        joined_with_the_batch=x.flatten(0, 1),
        joined_too_early=x.flatten(1, 2),
        added_up=x.sum(1),
        averaged=x.mean(1),
        first_head=x[:, 0],
        last_head=x[:, -1],
    )
    return choose(
        merged,
        squeezed=merged.squeeze(),
        squeezed_batch=merged.squeeze(0),
        flat=merged.flatten(),
        flat_sentences=merged.flatten(1),
        batch_joined_with_tokens=merged.flatten(0, 1),
        numbers_first=merged.mT,
        scaled=merged / math.sqrt(n_heads),
    )


MASKS = ("", "1 1 n n", "batch 1 1 n", "1 head n n", "n n", "head n n", "batch head n n", "1 1 1 n")
"""What a mask may depend on, draw by draw."""


def _multi_head_inputs(draw: Draw) -> tuple:
    """All kinds of masks, with a query that sees no key; one head; one token."""
    if draw.number in (4, 7):
        draw.sizes["head" if draw.number == 4 else "n"] = 1
    d_model = _model_width(draw)
    x, axes = draw.normal("batch n d_model"), draw.one_of(MASKS)
    matrices = [draw.normal("d_model d_model") / d_model**0.5 for _ in range(4)]
    mask = draw.booleans(axes) if axes else None
    if axes == "1 1 n n":
        mask = torch.ones_like(mask).tril()
    elif axes:
        mask[..., -1] = True
    if draw.number in (2, 3):
        mask[:1, ..., :1, :] = False  # a sentence, or a head's first query, without any key
    return x, *matrices, draw.size("head"), mask


def _no_future_leak(answer, inputs: tuple, output: Tensor) -> str | None:
    x, mask = inputs[0], inputs[-1]
    if mask is None or x.size(1) < 2 or mask.dim() < 2 or mask.size(-2) == 1:
        return None
    if mask[..., :-1, -1].any():  # some earlier token may see the last
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


@exercise(
    reference="transformer_lesson.model.attention:multi_head_attention",
    make_inputs=_multi_head_inputs,
    draws=8,
    returns={"output": "batch n d_model"},
    hints=(
        "Project, split into heads, attend, merge, project again. You have written all the parts.",
        "`x @ W_Q` holds the queries of all heads side by side; `split_heads` parts them. "
        "The same for keys and values.",
        "`heads, weights = scaled_dot_product_attention(Q, K, V, mask)` works on all heads "
        "at once. Then `merge_heads(heads) @ W_O`.",
    ),
    invariants=(_no_future_leak,),
)
def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Return Concat(head_1, ..., head_h) W_O."""
    n_heads = choose(n_heads, single_head=1)
    projections = choose((W_Q, W_K, W_V), transposed_weights=(W_Q.T, W_K.T, W_V.T))
    W_O = choose(W_O, transposed_weights=W_O.T, transposed_output=W_O.T)
    W_Q, W_K, W_V = choose(projections, one_projection=projections[:1] * 3)
    Q = _heads(choose(x @ W_Q, queries_not_projected=x), n_heads)
    K = choose(x @ W_K, queries_as_keys=x @ W_Q, exchanged=x @ W_V, keys_not_projected=x)
    V = choose(x @ W_V, keys_as_values=x @ W_K, exchanged=x @ W_K, values_not_projected=x)
    K, V = _heads(K, n_heads), _heads(V, n_heads)
    scale = choose(
        math.sqrt(Q.size(-1)),
        root_of_d_model=math.sqrt(x.size(-1)),
        unscaled=1.0,
        not_the_root=Q.size(-1),
        root_of_heads=math.sqrt(n_heads),
        inverse=1 / math.sqrt(Q.size(-1)),
    )
    weights = _weights(choose(Q @ K.mT, keys_ask_queries=K @ Q.mT) / scale, mask)
    output = _projected(weights @ V, x, W_O)
    return choose(output, pair=(output, weights), pair_of_means=(output, weights.mean(1)))


def _heads(numbers, n_heads):
    """Return each head's share of a projection, shape (batch, head, n, d_head)."""
    batch, n, _ = numbers.shape
    return choose(
        numbers.reshape(batch, n, n_heads, -1).transpose(1, 2),
        view_without_transpose=numbers.reshape(batch, n_heads, n, -1),
        never_transposed=numbers.reshape(batch, n_heads, n, -1),
        heads_attend_to_each_other=numbers.reshape(batch, n, n_heads, -1),
        dealt_out=numbers.reshape(batch, n, -1, n_heads).permute(0, 3, 1, 2),
        dealt_out_and_back=numbers.reshape(batch, n, -1, n_heads).permute(0, 3, 1, 2),
        sizes_exchanged=numbers.reshape(batch, n, -1, n_heads).transpose(1, 2),
    )


def _weights(scores, mask):
    """Return the shares of the keys; zeros for a query that sees none."""
    hidden = torch.tensor(False) if mask is None else choose(~mask, inverted=mask)
    hidden = choose(
        hidden,
        mask_ignored=torch.tensor(False),
        first_heads_mask=hidden[:, :1] if hidden.dim() == 4 else hidden,
    )
    masked = choose(
        scores.masked_fill(hidden, torch.finfo(scores.dtype).min),
        zero_for_hidden=scores.masked_fill(hidden, 0.0),
        hidden_after_softmax=scores,
    )
    shares = choose(
        masked.softmax(-1),
        over_queries=masked.softmax(-2),
        over_heads=masked.softmax(1),
        no_softmax=masked,
    )
    empty = hidden.all(-1, keepdim=True) if hidden.dim() else hidden
    return choose(
        shares.masked_fill(hidden, 0.0),
        shares.masked_fill(empty, 0.0),
        empty_rows_of_nan=shares.masked_fill(empty, math.nan),
        empty_rows_even=shares,
    )


def _projected(heads, x, W_O):
    """Return the heads side by side, mixed by the output projection."""
    batch, n_heads, n, d_head = heads.shape
    joined = choose(
        heads.transpose(1, 2).flatten(2),
        heads_attend_to_each_other=heads.flatten(2),
        merged_without_transpose=heads.reshape(batch, n, -1),
        never_transposed=heads.reshape(batch, n, -1),
        number_by_number=heads.permute(0, 2, 3, 1).flatten(2),
        dealt_out_and_back=heads.permute(0, 2, 3, 1).flatten(2),
        added_up=heads.sum(1).repeat(1, 1, n_heads),
        heads_in_other_order=heads.flip(1).transpose(1, 2).flatten(2),
    )
    output = choose(joined @ W_O, no_output_projection=joined, applied_twice=joined @ W_O @ W_O)
    return choose(
        output,
        residual=x + output,
        per_head=heads,
        activated=output.relu(),
    )
