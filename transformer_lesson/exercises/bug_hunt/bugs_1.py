"""Lesson 14, first part: functions with a bug that a published text has, for repair.

`repairs_1` holds the repaired ones under the same names. Norms and dropout are left out where
they have no part in the bug.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer_lesson.model import attention, masks


def gpt_block(
    x: Tensor, attention_1: Callable, attention_2: Callable, feed_forward: Callable
) -> Tensor:
    """Bug: the second attention has no mask."""
    mask = masks.causal_mask(x.size(1))  # (1, 1, query, key)
    x = x + attention_1(x, x, x, mask)
    x = x + attention_2(x, x, x)
    return x + feed_forward(x)


def next_token_logits(
    ids: Tensor, embedding: Callable, blocks: Iterable[Callable], projection: Callable
) -> Tensor:
    """Bug: the blocks take a mask, and nobody makes one."""
    x = embedding(ids)  # (batch, n, d_model)
    for block in blocks:
        x = block(x)
    return projection(x)  # (batch, n, vocab_size)


def mask_for_batch(ids: Tensor, pad_id: int) -> Tensor:
    """Bug: padding on the left stands before a token, and is seen."""
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    return mask.expand(len(ids), -1, -1, -1)  # (batch, 1, query, key)


def weights_of_real_keys(scores: Tensor, mask: Tensor) -> Tensor:
    """Bug: a softmax over nothing but minus infinity is 0 / 0."""
    hidden = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return (scores + hidden).softmax(dim=-1)  # (batch, head, query, key)


def half_precision_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Bug: half precision ends at 65504, and a fully masked row becomes uniform."""
    scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-1)  # (batch, head, query, key)


def cut_into_heads(x: Tensor, n_heads: int) -> Tensor:
    """Bug: `view` deals out the numbers token after token."""
    n, d_model = x.shape
    return x.view(n_heads, n, d_model // n_heads)  # (head, n, d_head)


def all_heads(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """Bug: none in the numbers, but every head waits for the one before."""
    heads = []
    for i in range(len(W_Q)):
        Q, K, V = x @ W_Q[i], x @ W_K[i], x @ W_V[i]  # (batch, n, d_head)
        heads.append(attention.scaled_dot_product_attention(Q, K, V)[0])
    return torch.stack(heads, dim=1)  # (batch, head, n, d_head)


def is_linear(attend: Callable, x: Tensor, y: Tensor) -> bool:
    """Bug: queries and keys stay as they are while the values change."""
    together = attend(x, x, x + y)
    apart = attend(x, x, x) + attend(x, x, y)
    return torch.allclose(together, apart, atol=1e-5)


def projection_parameters(d_model: int, n_heads: int) -> int:
    """Bug: a head's matrices map from d_model numbers, not from d_k."""
    d_k = d_model // n_heads
    W_Q = W_K = W_V = d_k * d_k  # numbers in each matrix of one head
    return n_heads * (W_Q + W_K + W_V)


def encoding_by_formula(n_positions: int, d_model: int) -> Tensor:
    """Bug: positions and columns count from 1, the formula from 0."""
    encoding = torch.zeros(n_positions, d_model)
    for pos in range(1, n_positions + 1):
        for column in range(1, d_model + 1):
            angle = pos / 10000 ** (2 * (column // 2) / d_model)
            value = math.cos(angle) if column % 2 else math.sin(angle)
            encoding[pos - 1, column - 1] = value
    return encoding


def encoding_of_any_width(n_positions: int, d_model: int) -> Tensor:
    """Bug: an odd width has room for one cosine fewer."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    encoding = torch.zeros(n_positions, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


def add_positions(x: Tensor, table: Tensor) -> Tensor:
    """Bug: the first axis of x is the sentence, not the token."""
    table = table[:, None]  # (max_len, 1, d_model)
    return x + table[: x.size(0)]


def frequencies(d_model: int) -> Tensor:
    """Bug: the exponent is the same for every entry."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    return two_i * 1 / math.exp(math.log(10000.0) / d_model)  # radians per token
