"""What learners might write for the exercises of lesson 03."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import attention_scores


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "a naive exponential is inf for scores above 88",
)
def _(Q, K, V, mask=None):
    e = torch.exp(attention_scores(Q, K))
    if mask is not None:
        e = e * mask
    total = e.sum(dim=-1, keepdim=True)
    weights = torch.where(total > 0, e / total, torch.zeros_like(e))
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "weights with dropout, always on")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    weights = F.dropout(weights, 0.1)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "a boolean index of the mask's own shape")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        weights[~mask.any(dim=-1)] = 0.0
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    # the identity as values gives the weights
    n = K.size(-2)
    identity = torch.eye(n, dtype=Q.dtype).expand(*K.shape[:-2], n, n)
    if mask is not None:
        mask = mask.expand(*Q.shape[:-1], n)
    weights = F.scaled_dot_product_attention(Q, K, identity, attn_mask=mask)
    if mask is not None:
        weights = weights.nan_to_num(0.0) * mask.any(dim=-1, keepdim=True)
    return weights @ V, weights


@right("own_noun")
def _(R):
    # one step ahead only, and loud
    W_Q, W_K = torch.zeros(7, 3), torch.zeros(7, 3)
    W_Q[0, 0], W_K[1, 0] = 50.0, 1.0
    W_Q[5:, 1:] = 50.0 * R
    W_K[5:, 1:] = torch.eye(2)
    return W_Q, W_K
