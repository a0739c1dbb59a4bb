"""Lesson 07: the causal mask, the decoder; behind it, whether a model sees ahead, and pictures."""

import torch

from transformer_lesson.model.attention import cross_attention, multi_head_attention
from transformer_lesson.model.blocks import decoder_block
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


def causal_mask(n):
    """Return the mask that lets each position attend to itself and those before it."""
    return torch.ones(n, n, dtype=torch.bool).tril()[None, None]  # (1, 1, query, key)


def rest_of(block):
    """Return a block's feed-forward network and its three norms, each a function of one tensor."""
    norms = [lambda y, pair=pair: layer_norm(y, *pair, 1e-5) for pair in block.norms]
    return [lambda y: feed_forward(y, *block.feed_forward), *norms]


def decoder_forward(target_ids, memory, source_ids, weights):
    """Return logits, (batch, target, vocab_size)."""
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(y.size(1), y.size(2))
    n_heads = weights.n_heads
    causal = causal_mask(target_ids.size(1))
    real = padding_mask(source_ids, weights.pad_id)  # of the source
    for block in weights.decoder:
        y = decoder_block(
            y,
            memory,
            lambda y, W=block.self_attention: multi_head_attention(y, *W, n_heads, causal),
            lambda y, m, W=block.cross_attention: cross_attention(y, m, *W, n_heads, real),
            *rest_of(block),
        )
    return y @ weights.projection


def leaks_future(model, ids):
    """Return whether changing a token moves the output of any earlier position."""
    before = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()  # 0, or 1 if the token is 0
        if ((model(changed) - before)[:, :t].abs() > 1e-5).any():
            return True
    return False


def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k = side // size
    squares = pictures.reshape(n, k, size, k, size).transpose(2, 3)
    return squares.reshape(n, k * k, size * size)
