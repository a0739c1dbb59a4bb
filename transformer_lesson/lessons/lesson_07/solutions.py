"""Lesson 07: the causal mask; behind it, whether a model sees ahead, and pictures as tokens."""

import torch


def causal_mask(n):
    """Return the mask that lets each position attend to itself and those before it."""
    return torch.ones(n, n, dtype=torch.bool).tril()[None, None]  # (1, 1, query, key)


def leaks_future(model, ids):
    """Return whether changing a token moves the output of any earlier position."""
    before = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()  # 0, or 1 if the token is 0
        if ((model(changed) - before)[:, :t].abs() > 1e-5).any():
            return True
    return False


def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k = side // size
    squares = pictures.reshape(n, k, size, k, size).transpose(2, 3)
    return squares.reshape(n, k * k, size * size)
