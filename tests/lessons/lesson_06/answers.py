"""What learners might write for the exercises of lesson 06."""

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.blocks import encoder_block
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


@wrong("encoder_block", "unusual", "both sub-layers side by side, as in GPT-J")
def _(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x) + feed_forward(x)))


@wrong("encoder_block", "unusual", "dropout that is always on")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + F.dropout(attention(x), 0.1))
    x = norm_2(x + F.dropout(feed_forward(x), 0.1))
    return x


@right("encoder_block")
def _(x, attention, feed_forward, norm_1, norm_2):
    def add_and_norm(before, after, norm):
        return norm(torch.stack([before, after]).sum(0))

    Z = x
    A = attention(Z)
    N = add_and_norm(Z, A, norm_1)
    out = feed_forward(N)
    return add_and_norm(N, out, norm_2)


@right("padding_mask")
def _(ids, pad_id):
    batch, n = ids.shape
    mask = torch.ones(batch, 1, 1, n, dtype=torch.bool)
    for b in range(batch):
        for k in range(n):
            if ids[b, k] == pad_id:
                mask[b, 0, 0, k] = False
    return mask


def _sublayers(block, n_heads, mask):
    return (
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, mask),
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *block.norms[0]),
        lambda h: layer_norm(h, *block.norms[1]),
    )


@right("encoder_forward")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        x = encoder_block(x, *_sublayers(block, weights.n_heads, mask))
    return x


@wrong("encoder_forward", "unusual", "a pre-norm stack")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        attend, network, norm_1, norm_2 = _sublayers(block, weights.n_heads, mask)
        x = x + attend(norm_1(x))
        x = x + network(norm_2(x))
    return x
