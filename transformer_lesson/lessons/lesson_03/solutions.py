"""Lesson 03: scores, weights, masks."""

import math

import torch


def attention_scores(Q, K):
    """Return Q K^T / sqrt(d_head), for any leading axes."""
    return Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))  # (..., query, key)


def scaled_dot_product_attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d_k)) V and the weights; zeros where every key is hidden."""
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))  # (..., query, key)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
        weights = weights.masked_fill(~mask, 0.0)  # for queries whose keys are all hidden
    return weights @ V, weights
