"""Attention that never holds the table of scores: keys block by block, one softmax kept up to date.

`scaled_dot_product_attention` gives the same numbers but holds an n x n table on the way; a fused
kernel does in fast memory what this module does in Python.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.attention import attention_scores


def online_softmax(
    largest: Float[Tensor, "*batch query"],
    total: Float[Tensor, "*batch query"],
    output: Float[Tensor, "*batch query d_value"],
    scores: Float[Tensor, "*batch query key"],
    values: Float[Tensor, "*batch key d_value"],
) -> tuple[
    Float[Tensor, "*batch query"],
    Float[Tensor, "*batch query"],
    Float[Tensor, "*batch query d_value"],
]:
    """Fold one more block of keys into a softmax, and return the new state.

    Of all scores s_j and values v_j that a query has seen so far, the state holds

        largest = max s_j,   total = sum exp(s_j - largest),   output = sum exp(s_j - largest) v_j

    so that softmax(s) V = output / total. Before the first block it is -inf, 0 and 0.

    Args:
        largest: shape (..., query).
        total: shape (..., query).
        output: not divided yet, shape (..., query, d_value).
        scores: of the block's keys, shape (..., query, key); -inf where a key is hidden.
        values: of the block's keys, shape (..., key, d_value).

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), algorithm 3;
    Dao et al., "FlashAttention" (2022), algorithm 1.
    """
    new = torch.maximum(largest, scores.amax(dim=-1))  # (..., query)
    shift = new.clamp(min=torch.finfo(new.dtype).min)  # finite where all keys were hidden so far
    weights = (scores - shift[..., None]).exp()  # (..., query, key)
    shrink = (largest - shift).exp()  # for what was summed from the old maximum
    return new, total * shrink + weights.sum(-1), output * shrink[..., None] + weights @ values


def attention_in_blocks(
    Q: Float[Tensor, "*batch query d_head"],
    K: Float[Tensor, "*batch key d_head"],
    V: Float[Tensor, "*batch key d_value"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "*batch query d_value"]:
    """Return softmax(Q K^T / sqrt(d_head)) V with memory for the scores of one block of keys.

    Args:
        Q: queries, shape (..., query, d_head).
        K: keys, shape (..., key, d_head).
        V: values, shape (..., key, d_value).
        block_size: keys in a block; the last block may have fewer.
        causal: whether query i sees keys 0 to i only; then there are as many keys as queries.

    Returns:
        The output, shape (..., query, d_value).

    Raises:
        ValueError: block_size is under 1, or a causal text has unequal numbers of queries and keys.

    Source: Dao et al., "FlashAttention" (2022), algorithm 1.
    """
    n, n_keys = Q.size(-2), K.size(-2)
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}, but a block needs at least one key.")
    if causal and n != n_keys:
        raise ValueError(f"A causal text has a key for each query: there are {n} and {n_keys}.")
    state = (
        Q.new_full(Q.shape[:-1], -math.inf),
        Q.new_zeros(Q.shape[:-1]),
        Q.new_zeros(*Q.shape[:-1], V.size(-1)),
    )
    for start in range(0, n_keys, block_size):
        stop = min(start + block_size, n_keys)
        scores = attention_scores(Q, K[..., start:stop, :])  # (..., query, key of this block)
        if causal:
            places = torch.arange(n, device=Q.device)
            later = places[start:stop] > places[:, None]  # (query, key of this block)
            scores = scores.masked_fill(later, -math.inf)
        state = online_softmax(*state, scores, V[..., start:stop, :])
    _, total, output = state
    return output / total[..., None]
