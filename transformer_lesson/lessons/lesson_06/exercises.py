"""Lesson 06: the encoder block, who told a word what is new, and the whole encoder.

Long because the news can be measured in forty wrong ways, which all look like lengths.
"""

import torch
from torch import Tensor, nn

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model import blocks
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


def _encoder_inputs(draw: Draw) -> tuple:
    """One sentence, one token, and double precision in memory as its transpose."""
    if draw.number in (2, 3):
        draw.sizes[("batch", "n")[draw.number - 2]] = 1
    x = draw.normal("batch n d_model")
    if draw.number == 4:
        x = x.double().mT.contiguous().mT
    attention = random_layers.attention(draw, takes=1 if draw.number == 5 else None)
    network = random_layers.feed_forward(draw)
    return x, attention, network, random_layers.norm(draw), random_layers.norm(draw)


@exercise(
    reference="transformer_lesson.model.blocks:encoder_block",
    make_inputs=_encoder_inputs,
    draws=6,
    returns={"output": "batch n d_model"},
    hints=(
        "The block is two of lesson 05's branches in a row. Here `attention` and "
        "`feed_forward` each take one argument.",
        "The second branch starts from what the first one returned: its sub-layer reads that, "
        "and its sum adds to that.",
        "`x = norm_1(x + attention(x))`, and then the same with the other two functions.",
    ),
    invariants=(
        random_layers.is_deterministic,
        random_layers.callbacks_get_the_right_tensors(
            blocks.encoder_block, "attention norm_1 feed_forward norm_2"
        ),
        random_layers.gradients_are_kept(blocks.encoder_block),
    ),
)
def encoder_block(x, attention, feed_forward, norm_1, norm_2):
    """Post-norm: return norm_2(H + feed_forward(H)), where H = norm_1(x + attention(x))."""
    attention, feed_forward = choose(
        (attention, feed_forward), feed_forward_first=(feed_forward, attention)
    )
    norm_1, norm_2 = choose(
        (norm_1, norm_2),
        norms_swapped=(norm_2, norm_1),
        first_norm_twice=(norm_1, norm_1),
        new_norms=(nn.LayerNorm(x.size(-1)),) * 2,
    )
    H = _attention_branch(choose(x, input_normalized=norm_1(x)), attention, norm_1)
    return _feed_forward_branch(x, H, feed_forward, norm_2)


def _attention_branch(x, attention, norm):
    """Return norm(x + attention(x))."""
    read = choose(x, pre_norm=norm(x))
    found = choose(
        attention(read),
        norms_before_sums=norm(attention(read)),
        three_arguments=attention(read, read, read),
        one_sentence_at_a_time=torch.stack([attention(sentence) for sentence in read]),
        no_attention=torch.zeros_like(x),
    )
    carried = choose(x, no_first_residual=torch.zeros_like(x), no_residuals=torch.zeros_like(x))
    total = choose(carried + found, in_place=x.add_(found))
    return choose(norm(total), pre_norm=total, norms_before_sums=total)


def _feed_forward_branch(x, H, feed_forward, norm):
    """Return norm(H + feed_forward(H))."""
    source = choose(H, both_read_x=x)
    read = choose(source, pre_norm=norm(source), second_pre_norm=norm(source))
    written = choose(feed_forward(read), norms_before_sums=norm(feed_forward(read)))
    carried = choose(
        H,
        residual_of_the_input=x,
        no_second_residual=torch.zeros_like(x),
        no_residuals=torch.zeros_like(x),
    )
    total = choose(
        carried + written, in_place=carried.add_(written) if carried is x else carried + written
    )
    return choose(
        norm(total),
        pre_norm=total,
        second_pre_norm=total,
        norms_before_sums=total,
        no_second_norm=total,
    )


def _runs_inputs(draw: Draw) -> tuple:
    """One sentence, one head, one word; double and turned in memory; one word's values new."""
    if draw.number in (1, 2, 3):
        draw.sizes[("batch", "head", "n")[draw.number - 1]] = 1
    weights, new_weights = ((2 * draw.normal("batch head n n")).softmax(-1) for _ in range(2))
    values, new_values = (draw.normal("batch head n d_head") for _ in range(2))
    if draw.number == 4:  # heads and words have changed places in memory
        values, new_values = (
            one.double().transpose(1, 2).contiguous().transpose(1, 2)
            for one in (values, new_values)
        )
        weights, new_weights = weights.double(), new_weights.double()
    if draw.number == 5:
        new_values[:, :, 1:] = values[:, :, 1:]
    return weights, values, new_weights, new_values


@breaks("news where nothing changed")
def _equal_runs_have_no_news(answer, inputs: tuple, told: Tensor) -> str | None:
    weights, values, _, _ = inputs
    most = answer(weights, values, weights, values).abs().max().item()
    if most < 1e-3:
        return None
    return (
        "Two equal runs have no news: called with the same run twice, your function must give 0 "
        f"everywhere. Yours gives up to {most:.4g}.\nWhere do you take the difference?"
    )


@exercise(
    reference="transformer_lesson.interpretability.causality:who_told",
    make_inputs=_runs_inputs,
    draws=6,
    returns={"told": "batch n n"},
    hints=(
        "In one head, what word i gets from word j is a vector: the weight of i on j, times j's "
        "values. You need it for every i and every j, so its shape is "
        "(batch, head, n, n, d_head).",
        "`weights[..., None] * values[:, :, None]` is that tensor: axis 2 is who gets, axis 3 is "
        "who gives. Make one for each run, and subtract before you measure any length.",
        "The length runs over heads and over d_head: `change.square().sum(dim=(1, -1)).sqrt()`.",
    ),
    invariants=(random_layers.is_deterministic, _equal_runs_have_no_news),
)
def who_told(weights, values, new_weights, new_values):
    """Return how long the change is of what each word gets from each, all heads end to end."""
    weights, new_weights = choose(
        (weights, new_weights),
        weights_of_the_first_run=(weights, weights),
        weights_of_the_second_run=(new_weights, new_weights),
        turned_weights=(weights.mT, new_weights.mT),
        softmax_again=(weights.softmax(-1), new_weights.softmax(-1)),
        no_weights=(torch.ones_like(weights), torch.ones_like(weights)),
        one_mean_of_all_heads=(_over_heads(weights), _over_heads(new_weights)),
    )
    values, new_values = choose(
        (values, new_values),
        values_of_the_first_run=(values, values),
        values_of_the_second_run=(new_values, new_values),
    )
    before, now = _brought(weights, values), _brought(new_weights, new_values)
    change = now - before
    squares = _squares(change)
    told = _length(squares, before, now)
    return choose(told, shares=told / told.sum(-1, keepdim=True))


def _over_heads(weights):
    """Return the mean of all heads in the place of each."""
    return weights.mean(1, keepdim=True).expand_as(weights)


def _brought(weights, values):
    """Return what each word gets from each in every head, (batch, head, n, n, d_head)."""
    return weights[..., None] * values[:, :, None]


def _length(squares, before, now):
    """Return the length of each change, over all heads at once."""
    ends = _over_all_heads(before, now)
    return choose(
        squares.sqrt(),
        lengths_compared=(ends[1] - ends[0]).abs(),
        compared_with_before=squares.sqrt() / ends[0],
        directions_compared=1 - (before * now).sum((1, -1)) / (ends[0] * ends[1]),
    )


def _over_all_heads(*parts):
    """Return the lengths over all heads at once."""
    return [part.square().sum((1, -1)).sqrt() for part in parts]


def _squares(change):
    """Return the square of the length of each change, over all heads at once."""
    return choose(
        change.square().sum((1, -1)),
        heads_averaged_first=change.mean(1).square().sum(-1),
        first_head=change[:, 0].square().sum(-1),
    )


def _forward_inputs(draw: Draw) -> tuple:
    """With padding and without, one sentence, one token, one block."""
    draw.sizes |= ({}, {}, {"batch": 1}, {}, {"source": 1}, {})[draw.number]
    weights = random_layers.weights(draw)
    words, padded = random_layers.SOURCE_WORDS, draw.number != 2
    return random_layers.ids(draw, "source", words, weights.pad_id, padded), weights


@exercise(
    reference="transformer_lesson.model.forward:encoder_forward",
    helpers=("transformer_lesson.model.forward:_encoder_layer",),
    make_inputs=_forward_inputs,
    draws=6,
    returns={"memory": "batch source d_model"},
    hints=(
        "You need three things before the blocks: the mask that hides padding, the embeddings, "
        "and the positions. Then comes `for block in weights.encoder`.",
        "`encoder_block` wants functions of one argument. "
        "`lambda h: multi_head_attention(h, *block.self_attention, weights.n_heads, mask)` is one.",
        "`block.feed_forward` holds W_1, b_1, W_2, b_2, and `block.norms` holds two pairs of gamma "
        "and beta. Each block reads what the one before it returned.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def encoder_forward(source_ids, weights):
    """Return the memory: embeddings plus positions, passed through every block."""
    n_heads, table = choose(weights.n_heads, single_head=1), weights.source_table
    table = choose(table, target_table=weights.target_table)
    real = padding_mask(source_ids, weights.pad_id)
    mask = choose(
        real, no_mask=None, causal=causal_mask(source_ids.size(1)), hidden_queries=real.mT
    )
    PE = sinusoidal_encoding(source_ids.size(1), table.size(1))
    x = _placed(source_ids, table, PE)
    stack = choose(
        weights.encoder, first_block_only=weights.encoder[:1], last_block_only=weights.encoder[-1:]
    )
    for block in stack:
        x = _through(x, block, n_heads, mask)
    return x


def _placed(ids, table, PE):
    """Return embeddings plus positions."""
    x = choose(embed(ids, table), not_scaled=table[ids])
    return choose(x + PE, no_positions=x)


def _through(x, block, n_heads, mask):
    """Return what a block makes of x."""
    W_Q, W_K, W_V, W_O = block.self_attention
    matrices = (W_Q, W_K, W_V, W_O)
    first, second = block.norms[:2]
    sublayers = (
        lambda h: multi_head_attention(h, *matrices, n_heads, mask),
        lambda h: feed_forward(h, *block.feed_forward),
    )
    norms = lambda h: layer_norm(h, *first, 1e-5), lambda h: layer_norm(h, *second, 1e-5)
    between = blocks.residual_branch_pre(x, sublayers[0], norms[0])
    return choose(
        blocks.encoder_block(x, *sublayers, *norms),
        pre_norm=blocks.residual_branch_pre(between, sublayers[1], norms[1]),
    )
