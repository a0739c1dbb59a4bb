"""Lesson 13: what a window cuts off, a router."""

import torch


def cut_off(weights, window):
    """Return what a window would take from each token, as a share of all attention."""
    head, n, _ = weights.shape
    i, j = torch.arange(n)[:, None], torch.arange(n)  # query, key
    far = i - j >= window  # (n, n)
    return (weights * far).sum(dim=(0, 1)) / (head * n)  # (n,)


def route(x, W_router, k):
    """Return each token's weights for the experts, and the balance loss."""
    P = (x @ W_router).softmax(dim=-1)  # (n, expert)
    best = P.topk(k, dim=-1).indices  # (n, k)
    chosen = torch.zeros_like(P).scatter(-1, best, 1.0)  # (n, expert)
    share = chosen.mean(dim=0) / k
    return P * chosen, P.size(1) * (share * P.mean(dim=0)).sum()
