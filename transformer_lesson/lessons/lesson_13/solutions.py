"""Lesson 13: slower pairs, what a window cuts off, a router."""

import math

import torch


def stretched_frequencies(d_head, base, trained_length, factor, low=1.0, high=4.0):
    """Return how fast each pair turns when texts are `factor` times as long as in training."""
    j = torch.arange(d_head // 2)
    frequency = base ** (-2 * j / d_head)  # radians per token
    turns = trained_length * frequency / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return keep * frequency + (1 - keep) * frequency / factor


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
