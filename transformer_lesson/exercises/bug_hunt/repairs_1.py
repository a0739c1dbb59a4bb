"""Lesson 14, first part: the functions of `bugs_1`, repaired."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer_lesson.model import attention, masks


def gpt_block(
    x: Tensor, attention_1: Callable, attention_2: Callable, feed_forward: Callable
) -> Tensor:
    """Two attentions under the same causal mask, then the feed-forward, each added to x."""
    mask = masks.causal_mask(x.size(1))  # (1, 1, query, key)
    x = x + attention_1(x, x, x, mask)
    x = x + attention_2(x, x, x, mask)
    return x + feed_forward(x)


def next_token_logits(
    ids: Tensor, embedding: Callable, blocks: Iterable[Callable], projection: Callable
) -> Tensor:
    """Logits for each next token from the tokens up to it."""
    x = embedding(ids)  # (batch, n, d_model)
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    for block in blocks:
        x = block(x, mask)
    return projection(x)  # (batch, n, vocab_size)


def mask_for_batch(ids: Tensor, pad_id: int) -> Tensor:
    """The mask that hides what comes later, and padding wherever it stands."""
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    return mask & masks.padding_mask(ids, pad_id)  # (batch, 1, query, key)


def weights_of_real_keys(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that the mask allows; zeros where it allows none."""
    lowest = torch.finfo(scores.dtype).min  # finite, so that no row is 0 / 0
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # (batch, head, query, key)


def half_precision_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that the mask allows, in any precision; zeros where it allows none."""
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)  # (batch, head, query, key)


def cut_into_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its own d_model / n_heads numbers of every token."""
    n, d_model = x.shape
    x = x.view(n, n_heads, d_model // n_heads)  # (n, head, d_head)
    return x.transpose(0, 1)  # (head, n, d_head)


def all_heads(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """The results of all heads at once: the matrices' head axis becomes an axis of Q, K and V."""
    Q, K, V = (torch.einsum("bnd,hdk->bhnk", x, W) for W in (W_Q, W_K, W_V))
    return attention.scaled_dot_product_attention(Q, K, V)[0]  # (batch, head, n, d_head)


def is_linear(attend: Callable, x: Tensor, y: Tensor) -> bool:
    """Whether self-attention of a sum is the sum of the self-attentions."""
    together = attend(x + y, x + y, x + y)
    apart = attend(x, x, x) + attend(y, y, y)
    return torch.allclose(together, apart, atol=1e-5)


def projection_parameters(d_model: int, n_heads: int) -> int:
    """Numbers in W_Q, W_K and W_V of all heads together, without biases."""
    d_k = d_model // n_heads
    W_Q = W_K = W_V = d_model * d_k  # numbers in each matrix of one head
    return n_heads * (W_Q + W_K + W_V)


def encoding_by_formula(n_positions: int, d_model: int) -> Tensor:
    """Sines in even columns, cosines in odd ones; positions and columns count from 0."""
    encoding = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for column in range(d_model):
            angle = pos / 10000 ** (2 * (column // 2) / d_model)
            encoding[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return encoding


def encoding_of_any_width(n_positions: int, d_model: int) -> Tensor:
    """Sines and cosines in turn; an odd width ends in a sine without its cosine."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    encoding = torch.zeros(n_positions, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()[:, : d_model // 2]
    return encoding


def add_positions(x: Tensor, table: Tensor) -> Tensor:
    """Add row i of the table to token i of every sentence."""
    return x + table[: x.size(1)]  # (batch, n, d_model) + (n, d_model)


def frequencies(d_model: int) -> Tensor:
    """The speed of each pair of columns: 10000^(-2i / d_model), in radians per token."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    return torch.exp(two_i * (-math.log(10000.0) / d_model))
