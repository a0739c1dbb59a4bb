"""What learners might write for the exercises of lesson 04."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.model import attention
from transformer_lesson.model.attention import merge_heads, split_heads


@wrong("role_head", "unusual", "an article hands over -1, so that only a verb is above 0")
def _(n_places):
    W_Q, W_K = torch.zeros(2, 6 + n_places, n_places)
    W_V = torch.zeros(6 + n_places, 1)
    W_Q[7:, :-1], W_K[6:] = 50 * torch.eye(n_places - 1), torch.eye(n_places)
    W_Q[6, 0] = 50
    W_V[2], W_V[0] = 1, -1
    return W_Q, W_K, W_V


@right("role_head")
def _(n_places):
    # (i - 1 - j)^2, without what is the same for all j: 2 (i - 1) j - j^2
    place = torch.arange(n_places).float()
    W_Q, W_K = torch.zeros(2, 6 + n_places, 2)
    W_V = torch.zeros(6 + n_places, 1)
    W_Q[6:] = 40 * torch.stack([2 * (place - 1), -torch.ones(n_places)], dim=1)
    W_K[6:] = torch.stack([place, place**2], dim=1)
    W_V[2] = 1
    return W_Q, W_K, W_V


@right("role_head")
def _(n_places):
    # the places as a clock with two empty hours, which W_Q turns back by one
    hours = 2 * math.pi * torch.arange(n_places, dtype=torch.float64) / (n_places + 2)
    facts, one = torch.zeros(6, 2), 2 * math.pi / (n_places + 2)
    asked = torch.stack([(hours - one).sin(), (hours - one).cos()], dim=1)
    found = torch.stack([hours.sin(), hours.cos()], dim=1)
    return (
        torch.cat([facts, 3000 * asked]),
        torch.cat([facts, found]),
        torch.eye(6 + n_places)[:, 2:3],
    )


@right("role_head")
def _(n_places):
    # the first word looks for an article, which is itself or anything but a verb
    W_Q, W_K = torch.zeros(2, 6 + n_places, n_places + 1, dtype=torch.long)
    for place in range(1, n_places):
        W_Q[6 + place, place - 1] = 80
    W_Q[6, n_places] = 80
    W_K[6:, :n_places] = torch.eye(n_places)
    W_K[0, n_places] = 1
    return [W_Q, W_K, torch.tensor([[0], [0], [1], *[[0]] * (n_places + 3)])]


@wrong("split_heads", "unusual", "a head has always 64 numbers")
def _(x, n_heads):
    b, n, _ = x.shape
    return x.reshape(b, n, n_heads, 64).transpose(1, 2)


@wrong("split_heads", "unusual", "puts the heads behind each other on the token axis")
def _(x, n_heads):
    return torch.cat(x.chunk(n_heads, dim=2), dim=1).unsqueeze(1)


@wrong("split_heads", "unusual", "cuts the tokens among the heads instead of the numbers")
def _(x, n_heads):
    parts = x.tensor_split(n_heads, dim=1)
    return torch.stack(parts, dim=1)


@wrong("split_heads", "pair", "a head has 64 numbers", "squeezes a batch of one")
def _(x, n_heads):
    n = x.size(1)
    return x.reshape(-1, n, n_heads, 64).permute(0, 2, 1, 3).squeeze(0)


@right("split_heads")
def _(x, n_heads):
    b, n, d_model = x.shape
    d_head = d_model // n_heads
    out = torch.empty(b, n_heads, n, d_head, dtype=x.dtype)
    for h in range(n_heads):
        for j in range(d_head):
            out[:, h, :, j] = x[:, :, h * d_head + j]
    return out


@wrong("merge_heads", "usual", "view after the transpose, without contiguous")
def _(x):
    b, h, n, d = x.shape
    return x.transpose(1, 2).view(b, n, h * d)


@wrong("merge_heads", "unusual", "d_model is always 512")
def _(x):
    return x.transpose(1, 2).reshape(x.size(0), -1, 512)


@right("merge_heads")
def _(x):
    batch, n_heads, n, d_head = x.shape
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(batch, n, n_heads * d_head)


@wrong(
    "multi_head_attention", "unusual", "hands PyTorch's module the mask without turning it around"
)
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    b, n, d = x.shape
    if mask is not None:
        mask = mask.expand(b, n_heads, n, n).reshape(b * n_heads, n, n)
    module = nn.MultiheadAttention(d, n_heads, bias=False, batch_first=True, dtype=x.dtype)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([W_Q.T, W_K.T, W_V.T]))
        module.out_proj.weight.copy_(W_O.T)
    return module(x, x, x, attn_mask=mask)[0].nan_to_num(0.0)


@wrong("multi_head_attention", "unusual", "gives the mask a head axis that it already has")
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    scores = attention.attention_scores(Q, K)
    if mask is not None:
        mask = mask.unsqueeze(1)
    weights = attention.masked_softmax(scores, mask)
    return merge_heads(weights @ V) @ W_O


@wrong(
    "multi_head_attention",
    "unusual",
    "a mask of shape (head, query, key) is read as (batch, ...)",
)
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    context, _ = attention.scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(context) @ W_O


@wrong("multi_head_attention", "unusual", "asks the mask for a row of its own for every head")
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    outputs = []
    for h in range(n_heads):
        own = None if mask is None else mask[:, h]
        outputs.append(attention.scaled_dot_product_attention(Q[:, h], K[:, h], V[:, h], own)[0])
    return torch.cat(outputs, dim=-1) @ W_O


@right("multi_head_attention")
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    # head by head; each adds its part through its own rows of W_O
    b, n, d_model = x.shape
    d_head = d_model // n_heads
    if mask is not None:
        mask = mask.expand(b, n_heads, n, n)
    out = torch.zeros_like(x)
    for h in range(n_heads):
        c = slice(h * d_head, (h + 1) * d_head)
        own = None if mask is None else mask[:, h]
        head, _ = attention.scaled_dot_product_attention(
            x @ W_Q[:, c], x @ W_K[:, c], x @ W_V[:, c], own
        )
        out = out + head @ W_O[c]
    return out


@right("multi_head_attention")
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    d_model = x.size(-1)
    shape = (d_model, n_heads, d_model // n_heads)
    Q = torch.einsum("bnm,mhd->bhnd", x, W_Q.reshape(shape))
    K = torch.einsum("bnm,mhd->bhnd", x, W_K.reshape(shape))
    V = torch.einsum("bnm,mhd->bhnd", x, W_V.reshape(shape))
    scores = torch.einsum("bhqd,bhkd->bhqk", Q, K) / math.sqrt(shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return torch.einsum("bhqk,bhkd,hdm->bqm", weights, V, W_O.reshape(n_heads, shape[-1], d_model))


@right("multi_head_attention")
def _(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    qkv = x @ torch.cat([W_Q, W_K, W_V], dim=1)  # (b, n, 3 * d_model)
    Q, K, V = qkv.unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)
    if mask is not None:
        mask = mask.expand(*Q.shape[:3], x.size(1))
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    if mask is not None:
        heads = heads.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return heads.transpose(1, 2).flatten(2) @ W_O
