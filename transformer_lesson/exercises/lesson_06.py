"""Lesson 06: the encoder block, the whole encoder, and how many numbers blocks learn."""

import torch
from torch import nn

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
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
        "Two sub-layers, each in a post-norm residual branch. `attention` and "
        "`feed_forward` take one argument here.",
        "The second branch starts from the result of the first, both in its sub-layer and in "
        "its sum.",
        "`x = norm_1(x + attention(x))`, and once more with the other two.",
    ),
    invariants=(
        random_layers.the_same_again,
        random_layers.functions_are_given_the_right_things(
            blocks.encoder_block, "attention norm_1 feed_forward norm_2"
        ),
        random_layers.gradients_are_kept(blocks.encoder_block),
    ),
)
def encoder_block(x, attention, feed_forward, norm_1, norm_2):
    """Post-norm: return norm_2(N + feed_forward(N)), where N = norm_1(x + attention(x))."""
    attention, feed_forward = choose(
        (attention, feed_forward),
        feed_forward_first=(feed_forward, attention),
        attention_twice=(attention, attention),
        feed_forward_twice=(feed_forward, feed_forward),
    )
    norm_1, norm_2 = choose(
        (norm_1, norm_2),
        norms_swapped=(norm_2, norm_1),
        first_norm_twice=(norm_1, norm_1),
        second_norm_twice=(norm_2, norm_2),
        new_norms=(nn.LayerNorm(x.size(-1)),) * 2,
    )
    N = _attention_branch(choose(x, input_normalized=norm_1(x)), attention, norm_1)
    output = _feed_forward_branch(x, N, feed_forward, norm_2)
    return choose(output, one_branch=N, third_residual=x + output, squeezed=output.squeeze())


def _attention_branch(x, attention, norm):
    """Return norm(x + attention(x))."""
    read = choose(x, pre_norm=norm(x), first_pre_norm=norm(x))
    found = choose(
        attention(read),
        norms_before_sums=norm(attention(read)),
        first_norm_before_sum=norm(attention(read)),
        three_arguments=attention(read, read, read),
        one_sentence_at_a_time=torch.stack([attention(sentence) for sentence in read]),
        first_sentence=attention(read)[0],
        no_attention=torch.zeros_like(x),
    )
    carried = choose(
        x,
        no_first_residual=torch.zeros_like(x),
        no_residuals=torch.zeros_like(x),
        normalized_carried=norm(x),
    )
    total = choose(carried + found, in_place=x.add_(found))
    return choose(
        norm(total),
        pre_norm=total,
        first_pre_norm=total,
        norms_before_sums=total,
        first_norm_before_sum=total,
        no_first_norm=total,
        no_norms=total,
    )


def _feed_forward_branch(x, N, feed_forward, norm):
    """Return norm(N + feed_forward(N))."""
    source = choose(N, both_read_x=x)
    read = choose(source, pre_norm=norm(source), second_pre_norm=norm(source))
    written = choose(
        feed_forward(read),
        norms_before_sums=norm(feed_forward(read)),
        second_norm_before_sum=norm(feed_forward(read)),
        no_feed_forward=torch.zeros_like(x),
    )
    carried = choose(
        N,
        residual_of_the_input=x,
        both_residuals=N + x,
        no_second_residual=torch.zeros_like(x),
        no_residuals=torch.zeros_like(x),
        normalized_carried=norm(N),
    )
    total = choose(
        carried + written,
        in_place=carried.add_(written) if carried is x else carried + written,
    )
    return choose(
        norm(total),
        pre_norm=total,
        second_pre_norm=total,
        norms_before_sums=total,
        second_norm_before_sum=total,
        no_second_norm=total,
        no_norms=total,
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
        "Three things before the blocks: the mask that hides padding, the embeddings, the "
        "positions. Then `for block in weights.encoder`.",
        "`encoder_block` takes functions of one argument. "
        "`lambda h: multi_head_attention(h, *block.self_attention, weights.n_heads, mask)` is one.",
        "`block.feed_forward` holds W_1, b_1, W_2, b_2 and `block.norms` two pairs of gamma and "
        "beta. Each block reads what the one before it returned.",
    ),
    invariants=(random_layers.the_same_again,),
)
def encoder_forward(source_ids, weights):
    """Return the memory: embeddings plus positions, passed through every block."""
    n_heads, table = choose(weights.n_heads, single_head=1), weights.source_table
    table = choose(table, target_table=weights.target_table)
    real = padding_mask(source_ids, choose(weights.pad_id, pad_id_assumed=0))
    mask = choose(
        real,
        no_mask=None,
        inverted_mask=~real,
        causal=causal_mask(source_ids.size(1)),
        causal_too=real & causal_mask(source_ids.size(1)),
    )
    PE = sinusoidal_encoding(source_ids.size(1), table.size(1))
    x = _placed(source_ids, table, PE)
    stack = choose(
        weights.encoder,
        first_block_only=weights.encoder[:1],
        last_block_only=weights.encoder[-1:],
        first_block_again=weights.encoder[:1] * len(weights.encoder),
        last_block_first=weights.encoder[::-1],
        decoders_blocks=weights.decoder,
        no_blocks=(),
    )
    for block in stack:
        x = _through(choose(x, positions_in_the_loop=x + PE), block, n_heads, mask)
    return choose(
        x,
        normalized_at_the_end=layer_norm(x, *weights.encoder[-1].norms[1], 1e-5),
        projected=x @ weights.projection,
        averaged=x.mean(1),
        last_token=x[:, -1],
        padding_zeroed=x * real[:, 0, 0, :, None],
        squeezed=x.squeeze(),
        batch_behind=x.transpose(0, 1),
    )


def _placed(ids, table, PE):
    """Return embeddings plus positions."""
    x = choose(
        embed(ids, table),
        not_scaled=table[ids],
        scaled_twice=embed(ids, table) * table.size(1) ** 0.5,
    )
    return choose(
        x + PE,
        no_positions=x,
        positions_in_the_loop=x,
        positions_scaled_too=x + PE * table.size(1) ** 0.5,
        positions_from_one=x + sinusoidal_encoding(ids.size(1) + 1, table.size(1))[1:],
        positions_of_sentences=x + sinusoidal_encoding(ids.size(0), table.size(1))[:, None],
        positions_multiplied=x * PE,
        positions_alone=PE.expand_as(x),
    )


def _through(x, block, n_heads, mask):
    """Return what a block makes of x."""
    W_Q, W_K, W_V, W_O = block.self_attention
    matrices = choose(
        (W_Q, W_K, W_V, W_O),
        queries_and_keys_exchanged=(W_K, W_Q, W_V, W_O),
        keys_and_values_exchanged=(W_Q, W_V, W_K, W_O),
        queries_matrix_for_all=(W_Q, W_Q, W_Q, W_O),
        transposed_matrices=(W_Q.T, W_K.T, W_V.T, W_O.T),
    )
    first, second = choose(
        block.norms[:2],
        norms_swapped=(block.norms[1], block.norms[0]),
        first_norm_twice=(block.norms[0], block.norms[0]),
        second_norm_twice=(block.norms[1], block.norms[1]),
    )
    return blocks.encoder_block(
        x,
        lambda h: multi_head_attention(h, *matrices, n_heads, mask),
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *first, 1e-5),
        lambda h: layer_norm(h, *second, 1e-5),
    )


def _count_inputs(draw: Draw) -> tuple:
    """One block, vectors of one number, no block at all, and so many that float32 rounds."""
    large = {"d_model": 512, "d_ff": 20_001, "n_layers": 1}
    draw.sizes |= ({}, {}, {"n_layers": 1}, {"d_model": 1}, {"n_layers": 0}, large)[draw.number]
    return draw.size("d_model"), draw.size("d_ff"), draw.size("n_layers")


@exercise(
    reference="transformer_lesson.model.parameters:count_encoder_parameters",
    make_inputs=_count_inputs,
    draws=6,
    returns={"count": ""},
    hints=(
        "Count one block: four attention projections, two feed-forward maps, two norms. "
        "Every projection and map has a bias.",
        "A map from a to b has a * b weights and b biases. A norm has a gamma and a beta of "
        "d_model numbers each.",
        "Attention: 4 * (d_model * d_model + d_model). Feed-forward: 2 * d_model * d_ff + "
        "d_ff + d_model. Norms: 4 * d_model. All of it n_layers times.",
    ),
)
def count_encoder_parameters(d_model, d_ff, n_layers):
    """Return how many numbers a stack of encoder blocks learns, biases included."""
    d_ff = choose(d_ff, four_times_as_wide=4 * d_model, always_2048=2048)
    attention, feed_forward = _count_attention(d_model), _count_feed_forward(d_model, d_ff)
    norms = choose(
        4 * d_model,
        half_of_the_norms=2 * d_model,
        three_norms=6 * d_model,
        one_number_a_norm=4,
        square_norms=4 * d_model * d_model,
    )
    block = choose(
        attention + feed_forward + norms,
        no_attention=feed_forward + norms,
        no_feed_forward=attention + norms,
        no_norms_or_biases=attention + feed_forward + norms - 4 * d_model,
    )
    count = choose(
        n_layers * block,
        one_block=block,
        attention_alone_repeated=n_layers * attention + feed_forward + norms,
        norms_alone_repeated=attention + feed_forward + n_layers * norms,
        norms_once=n_layers * (attention + feed_forward) + norms,
        power=block**n_layers,
        encoder_and_decoder=2 * n_layers * block,
        one_block_too_many=(n_layers + 1) * block,
        one_block_too_few=(n_layers - 1) * block,
    )
    count = choose(count, last_norm=count + 2 * d_model)
    return choose(
        count,
        decimal=float(count),
        single_precision=int(torch.tensor(float(count)).item()),
        rounded=round(count, -3),
        written_out=f"{count:,}",
        listed=[count],
    )


def _count_attention(d_model):
    """Return what four projections learn."""
    weights = choose(d_model * d_model, width_doubled=2 * d_model)
    bias = choose(d_model, no_biases=0, one_number_a_bias=1)
    projections = choose(4, no_output_projection=3, one_projection=1, two_attentions=8)
    numbers = projections * (weights + bias)
    return choose(
        numbers,
        three_biases_missing=numbers - 3 * bias,
        one_bias_missing=numbers - bias,
        each_of_8_heads=24 * (weights + bias) + 8 * weights + bias,
    )


def _count_feed_forward(d_model, d_ff):
    """Return what the two maps learn."""
    biases = choose(
        d_ff + d_model,
        no_biases=0,
        no_feed_forward_biases=0,
        one_number_a_bias=2,
        no_first_bias=d_model,
        first_bias_too_short=2 * d_model,
        second_bias_too_long=2 * d_ff,
    )
    weights = choose(
        2 * d_model * d_ff,
        one_map=d_model * d_ff,
        gated=3 * d_model * d_ff,
        square_maps=2 * d_model * d_model,
        sum_of_sizes=2 * (d_model + d_ff),
    )
    return weights + biases
