"""Lesson 07: the causal mask, the decoder, and whether a model sees ahead."""

import torch

from transformer_lesson.model.attention import cross_attention, multi_head_attention
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


def causal_mask(n):
    """Return the mask that lets each position attend to itself and those before it."""
    return torch.ones(n, n, dtype=torch.bool).tril()[None, None]  # (1, 1, query, key)


def decoder_forward(target_ids, memory, source_ids, weights):
    """Return logits: embeddings plus positions, every block, the projection."""
    causal = causal_mask(target_ids.size(1))
    real = padding_mask(source_ids, weights.pad_id)
    y = embed(target_ids, weights.target_table)  # (batch, target, d_model)
    y = y + sinusoidal_encoding(y.size(1), y.size(2))
    for block in weights.decoder:
        first, second, third = block.norms
        O_1 = multi_head_attention(y, *block.self_attention, weights.n_heads, causal)
        y = layer_norm(y + O_1, *first, 1e-5)
        O_2 = cross_attention(y, memory, *block.cross_attention, weights.n_heads, real)
        y = layer_norm(y + O_2, *second, 1e-5)
        O_3 = feed_forward(y, *block.feed_forward)
        y = layer_norm(y + O_3, *third, 1e-5)
    return y @ weights.projection  # (batch, target, vocab_size)


def leaks_future(model, ids):
    """Return whether changing a token moves the output of any earlier position."""
    before = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()  # 0, or 1 if the token is 0
        if ((model(changed) - before)[:, :t].abs() > 1e-5).any():
            return True
    return False
