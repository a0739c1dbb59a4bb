"""What learners might write for the exercises of lesson 07."""

import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import (
    cross_attention,
    multi_head_attention,
)
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


@right("leaks_future")
def _(model, ids):
    # one token of one sentence at a time, from behind
    batch, n = ids.shape
    original = model(ids).detach()
    for b in range(batch):
        for t in reversed(range(n)):
            copy = ids.clone()
            copy[b, t] = 1 if ids[b, t] == 0 else 0
            difference = model(copy).detach()[b, :t] - original[b, :t]
            if difference.numel() and difference.abs().max().item() > 1e-5:
                return True
    return False


def _functions(block, n_heads, causal, real):
    return (
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, causal),
        lambda h, memory: cross_attention(h, memory, *block.cross_attention, n_heads, real),
        lambda h: feed_forward(h, *block.feed_forward),
        *(lambda h, pair=pair: layer_norm(h, *pair) for pair in block.norms),
    )


@right("decoder_forward")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y += sinusoidal_encoding(y.size(1), y.size(2))
    causal = causal_mask(y.size(1)) & padding_mask(target_ids, weights.pad_id)
    real = (source_ids != weights.pad_id)[:, None, None]
    for block in weights.decoder:
        own, across, network, *norms = _functions(block, weights.n_heads, causal, real)
        y = norms[0](y + own(y))
        y = norms[1](y + across(y, memory))
        y = norms[2](y + network(y))
    return F.linear(y, weights.projection.T)


@wrong("patches", "usual", "the sizes of the grid and of the patch are exchanged")
def _(pictures, size):
    n, side, _ = pictures.shape
    k = side // size
    return pictures.reshape(n, size, k, size, k).transpose(2, 3).reshape(n, k * k, size * size)
