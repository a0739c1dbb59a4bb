"""What learners might write for the exercises of lesson 03."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import attention_scores


@wrong("attention_scores", "unusual", "divides the caller's Q in place")
def _(Q, K):
    Q /= math.sqrt(Q.size(-1))
    return Q @ K.transpose(-2, -1)


@wrong("attention_scores", "unusual", "einsum for exactly one leading axis")
def _(Q, K):
    return torch.einsum("bqd,bkd->bqk", Q, K) / math.sqrt(Q.shape[-1])


@wrong(
    "attention_scores",
    "unusual",
    "einsum for exactly two leading axes, an error for (query, d_k)",
)
def _(Q, K):
    energy = torch.einsum("nhqd,nhkd->nhqk", [Q, K])
    return energy / K.shape[3] ** (1 / 2)


@right("attention_scores")
def _(Q, K):
    # the scale shared out between both sides
    fourth_root = Q.size(-1) ** 0.25
    return torch.matmul(Q / fourth_root, (K / fourth_root).mT)


@right("attention_scores")
def _(Q, K):
    d_k = Q.size(-1)
    products = Q.double().unsqueeze(-2) * K.double().unsqueeze(-3)  # (..., query, key, d_k)
    return (products.sum(dim=-1) / math.sqrt(d_k)).to(Q.dtype)


@right("attention_scores")
def _(Q, K):
    columns = []
    for j in range(K.size(-2)):
        key = K[..., j, :].unsqueeze(-1)
        columns.append((Q @ key) / math.sqrt(Q.size(-1)))
    return torch.cat(columns, dim=-1)


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


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "softmax(dim=3) needs four axes, an error for (query, d_k)",
)
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=3).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "scales the caller's Q in place")
def _(Q, K, V, mask=None):
    scores = Q.div_(math.sqrt(Q.size(-1))) @ K.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
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


@wrong("scaled_dot_product_attention", "pair", "naive exponential", "a fully masked row is 0 / 0")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K).exp()
    if mask is not None:
        scores = scores * mask
    weights = scores / scores.sum(dim=-1, keepdim=True)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", Q.double(), K.double()) / Q.size(-1) ** 0.5
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    scores = torch.where(allowed, scores, -math.inf)
    top = scores.amax(dim=-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)
    e = (scores - top).exp()
    weights = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-300)
    output = torch.einsum("...qk,...kd->...qd", weights, V.double())
    return output.to(V.dtype), weights.to(Q.dtype)


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    # query by query
    outputs, rows = [], []
    for i in range(Q.size(-2)):
        q = Q[..., i : i + 1, :]
        s = (q * K).sum(dim=-1) / math.sqrt(K.size(-1))  # (..., key)
        if mask is not None:
            row = mask[..., min(i, mask.size(-2) - 1), :] if mask.dim() > 1 else mask
            s = s.masked_fill(~row, -math.inf)
        w = s.softmax(dim=-1).nan_to_num(nan=0.0)
        rows.append(w)
        outputs.append((w.unsqueeze(-1) * V).sum(dim=-2))
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


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


@right("own_noun")
def _(R):
    # the keys are turned back instead
    W_Q, W_K = torch.zeros(7, 7, dtype=torch.float64), torch.eye(7, dtype=torch.float64)
    W_Q[0, 1] = 60.0
    W_Q[5:, 5:] = 30.0 * torch.eye(2)
    W_K[5:, 5:] = R.double().T + (R.double() @ R.double()).T
    return W_Q, W_K
