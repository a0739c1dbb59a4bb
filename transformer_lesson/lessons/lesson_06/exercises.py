"""Lesson 06: the encoder block, the mask that hides padding, the whole encoder, and a swap."""

import torch
from torch import Tensor, nn

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model import blocks, masks
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


def _encoder_inputs(draw: Draw) -> tuple:
    """One sentence, one token, and double precision in memory as its transpose."""
    if draw.number in (2, 3):
        draw.sizes[("batch", "n")[draw.number - 2]] = 1
    random_layers.widen(draw, "batch n")
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
    attention, norm_1, feed_forward, norm_2 = choose(
        (attention, norm_1, feed_forward, norm_2),
        norms_for_sublayers=(norm_1, attention, norm_2, feed_forward),
    )
    H = _attention_branch(choose(x, input_normalized=norm_1(x)), attention, norm_1)
    return _feed_forward_branch(x, H, feed_forward, norm_2)


def _attention_branch(x, attention, norm):
    """Return norm(x + attention(x))."""
    read = choose(x, pre_norm=norm(x))
    output = choose(
        attention(read),
        norms_before_sums=norm(attention(read)),
        three_arguments=attention(read, read, read),
        one_sentence_at_a_time=torch.stack([attention(sentence) for sentence in read]),
        no_attention=torch.zeros_like(x),
    )
    carried = choose(x, no_first_residual=torch.zeros_like(x), no_residuals=torch.zeros_like(x))
    total = choose(carried + output, in_place=x.add_(output))
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


def _padding_inputs(draw: Draw) -> tuple:
    """Padding on the right, on the left, in between, nowhere and everywhere; ids on both sides."""
    pad_id = draw.one_of((0, 3, 7, 0, 9, 2))
    if draw.number == 5:
        draw.sizes["batch"] = 1
    ids = draw.integers("batch key", 0, 12)
    ids[ids == pad_id] = pad_id + 1
    n = ids.size(1)
    right, left, between, nowhere = slice(n // 2, n), slice(n // 2), slice(1, n - 1), slice(0)
    ids[::2, draw.one_of((right, left, between, nowhere))] = pad_id
    if draw.number == 4:
        ids[-1] = pad_id  # a sentence of nothing but padding
    return ids, pad_id


@breaks("a sentence of nothing but padding that shows a key")
def _padding_alone_shows_nothing(answer, inputs: tuple, mask: Tensor) -> str | None:
    ids, pad_id = inputs
    shown = (mask[:, 0, 0].bool() & (ids == pad_id).all(dim=1, keepdim=True)).nonzero()
    if len(shown) == 0:
        return None
    sentence, key = shown[0].tolist()
    return (
        f"Sentence {sentence} is nothing but padding, and your mask shows key {key} of it. Hide "
        "all of it: attention gives zeros to a query that sees nothing."
    )


@exercise(
    reference="transformer_lesson.model.masks:padding_mask",
    make_inputs=_padding_inputs,
    draws=6,
    returns={"mask": "batch head query key"},
    hints=(
        "Real tokens get True: one comparison with `pad_id` is enough.",
        "The scores have shape (batch, head, query, key). The mask hides padding keys, the same "
        "ones for every head and every query.",
        "`(ids != pad_id)` has shape (batch, key). Put two axes of size 1 in the middle: "
        "`[:, None, None, :]`.",
    ),
    invariants=(_padding_alone_shows_nothing,),
)
def padding_mask(ids, pad_id):
    """Return the mask that hides the keys that are padding."""
    pad_id = choose(pad_id, id_0=0, id_1=1)
    real = choose(
        ids != pad_id,
        inverted=ids == pad_id,
        ids_above=ids > pad_id,
        up_to_the_first=(ids == pad_id).cumsum(-1) == 0,
        counted_from_the_left=torch.arange(ids.size(1)) < (ids != pad_id).sum(-1, keepdim=True),
        any_sentence=(ids != pad_id).any(0).expand(ids.shape),
        one_padding_kept=(ids != pad_id) | ((ids == pad_id).cumsum(-1) == 1),
    )
    mask = choose(real[:, None, None, :], queries=real[:, None, :, None])
    return choose(mask, numbers=mask.float())


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
    real = masks.padding_mask(source_ids, weights.pad_id)
    mask = choose(
        real,
        no_mask=None,
        inverted_mask=~real,
        causal=masks.causal_mask(source_ids.size(1)),
        hidden_queries=real.mT,
    )
    PE = sinusoidal_encoding(source_ids.size(1), table.size(1))
    x = _placed(source_ids, table, PE)
    stack = choose(
        weights.encoder,
        first_block_only=weights.encoder[:1],
        last_block_only=weights.encoder[-1:],
        last_block_each_time=weights.encoder[-1:] * len(weights.encoder),
    )
    for i, block in enumerate(stack):
        x = choose(x, positions_in_every_block=x + PE if i else x)
        x = _through(x, block, n_heads, mask)
    return choose(x, padding_zeroed=x * real[:, 0, 0, :, None], positions_at_the_end=x + PE)


def _placed(ids, table, PE):
    """Return embeddings plus positions."""
    x = embed(ids, table)
    x = choose(x, not_scaled=table[ids], scaled_twice=x * table.size(1) ** 0.5)
    along_batch = sinusoidal_encoding(*x[:, 0].shape)[:, None]
    return choose(x + PE, no_positions=x, positions_at_the_end=x, sentences_counted=x + along_batch)


def _through(x, block, n_heads, mask):
    """Return what a block makes of x."""
    W_Q, W_K, W_V, W_O = block.self_attention
    matrices = (W_Q, W_K, W_V, W_O)
    norms = choose(block.norms, one_norm=block.norms[:1] * 2, norms_exchanged=block.norms[::-1])
    carried = choose((1, 1), no_first_residual=(0, 1), no_second_residual=(1, 0))
    for i, (gamma, beta) in enumerate(norms):
        read = choose(x, pre_norm=layer_norm(x, gamma, beta, 1e-5))
        if i == choose(0, feed_forward_first=1):
            written = multi_head_attention(read, *matrices, n_heads, mask)
        else:
            written = feed_forward(read, *block.feed_forward)
        x = carried[i] * x + written
        x = choose(layer_norm(x, gamma, beta, 1e-5), pre_norm=x)
    return x


def _swap_inputs(draw: Draw) -> tuple:
    """A word in the middle, the first, the last; double precision, one sentence, one word."""
    if draw.number in (3, 4):
        draw.sizes[("batch", "n")[draw.number - 3]] = 1
    memory, other = draw.normal("batch n d_model"), draw.normal("batch n d_model")
    if draw.number == 2:
        memory, other = memory.double(), other.double()
    n = draw.size("n")
    return memory, other, draw.one_of((n // 2, 0, n - 1, n // 2, 0))


@exercise(
    reference="transformer_lesson.lessons.lesson_06.solutions:swap",
    make_inputs=_swap_inputs,
    returns={"swapped": "batch n d_model"},
    hints=(
        "Only one vector of each sentence changes. Which of the three axes does `place` count?",
        "Work on a copy, or the caller's memory changes, too: `memory.clone()`.",
        "`[:, place]` is that vector of every sentence: copy it from `other` into your copy.",
    ),
)
def swap(memory, other, place):
    """Return memory with the vectors that other has at one place."""
    memory, other = choose((memory, other), exchanged=(other, memory))
    place = choose(
        place, one_later=(place + 1) % memory.size(1), one_earlier=(place - 1) % memory.size(1)
    )
    at = choose(slice(place, place + 1), all_after=slice(place, None), all_before=slice(place + 1))
    new = choose(other, nothing=memory, added=memory + other, mean=(memory + other) / 2)
    sentences = choose(slice(None), first_alone=slice(1))
    swapped = memory.clone()
    swapped[sentences, at] = new[sentences, at]
    return swapped
