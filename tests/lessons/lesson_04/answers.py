"""What learners might write for the exercises of lesson 04."""

import torch

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
    # the first word looks for an article, which is itself or anything but a verb
    W_Q, W_K = torch.zeros(2, 6 + n_places, n_places + 1, dtype=torch.long)
    for place in range(1, n_places):
        W_Q[6 + place, place - 1] = 80
    W_Q[6, n_places] = 80
    W_K[6:, :n_places] = torch.eye(n_places)
    W_K[0, n_places] = 1
    return [W_Q, W_K, torch.tensor([[0], [0], [1], *[[0]] * (n_places + 3)])]


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
