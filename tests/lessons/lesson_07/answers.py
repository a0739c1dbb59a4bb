"""What learners might write for the exercises of lesson 07."""

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import (
    cross_attention,
    multi_head_attention,
)
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


@right("causal_mask")
def _(n):
    return torch.eye(n).cumsum(dim=0).gt(0).unsqueeze(0).unsqueeze(0)


@right("cross_attention")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    (batch, n, d), m = y.shape, memory.size(1)
    q = (y @ W_Q).view(batch, n, n_heads, -1).transpose(1, 2)
    k = (memory @ W_K).view(batch, m, n_heads, -1).transpose(1, 2)
    v = (memory @ W_V).view(batch, m, n_heads, -1).transpose(1, 2)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.transpose(1, 2).reshape(batch, n, d) @ W_O


@right("leaks_future")
def _(model, ids):
    # one token of one sentence at a time, from behind
    batch, n = ids.shape
    original = model(ids).detach()
    for b in range(batch):
        for t in reversed(range(n)):
            copy = ids.clone()
            copy[b, t] = 1 if ids[b, t] == 0 else 0
            difference = model(copy).detach()[b, :t] - original[b, :t]
            if difference.numel() and difference.abs().max().item() > 1e-5:
                return True
    return False


@right("leaks_future")
def _(model, ids):
    # tries both 0 and 1; one of the two is certainly a change
    with torch.no_grad():
        reference = model(ids)
        largest = [0.0]
        for t in range(1, ids.shape[1]):
            for new in (0, 1):
                probe = torch.cat(
                    [ids[:, :t], torch.full_like(ids[:, :1], new), ids[:, t + 1 :]], dim=1
                )
                gap = F.l1_loss(model(probe)[:, :t], reference[:, :t], reduction="none")
                largest.append(gap.max().item())
    return max(largest) > 1e-5


@right("leaks_future")
def _(model, ids):
    n = ids.size(1)
    replacement = (ids == 0).to(ids.dtype)

    def moves_the_past(t):
        with torch.no_grad():
            only_t = torch.arange(n) == t
            changed = torch.where(only_t, replacement, ids)
            distance = torch.abs(model(changed)[:, :t] - model(ids)[:, :t])
        return bool(torch.any(distance > 1e-5))

    return any(moves_the_past(t) for t in range(1, n))


def _functions(block, n_heads, causal, real):
    return (
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, causal),
        lambda h, memory: cross_attention(h, memory, *block.cross_attention, n_heads, real),
        lambda h: feed_forward(h, *block.feed_forward),
        *(lambda h, pair=pair: layer_norm(h, *pair) for pair in block.norms),
    )


@right("decoder_forward")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y += sinusoidal_encoding(y.size(1), y.size(2))
    causal = causal_mask(y.size(1)) & padding_mask(target_ids, weights.pad_id)
    real = (source_ids != weights.pad_id)[:, None, None]
    for block in weights.decoder:
        own, across, network, *norms = _functions(block, weights.n_heads, causal, real)
        y = norms[0](y + own(y))
        y = norms[1](y + across(y, memory))
        y = norms[2](y + network(y))
    return F.linear(y, weights.projection.T)


@right("patches")
def _(pictures, size):
    return F.unfold(pictures[:, None], size, stride=size).mT


@right("patches")
def _(pictures, size):
    """Square by square."""
    places = range(0, pictures.size(-1), size)
    squares = [pictures[:, y : y + size, x : x + size] for y in places for x in places]
    return torch.stack([square.flatten(1) for square in squares], dim=1)


@right("patches")
def _(pictures, size):
    squares = pictures.unfold(1, size, size).unfold(2, size, size)
    return squares.flatten(1, 2).flatten(2)


@wrong("patches", "usual", "the sizes of the grid and of the patch are exchanged")
def _(pictures, size):
    n, side, _ = pictures.shape
    k = side // size
    return pictures.reshape(n, size, k, size, k).transpose(2, 3).reshape(n, k * k, size * size)


@wrong("patches", "unusual", "a window that moves by one pixel")
def _(pictures, size):
    return F.unfold(pictures[:, None], size).mT
