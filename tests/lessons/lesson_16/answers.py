"""What learners might write for the exercises of lesson 16."""

import math
from itertools import combinations

import torch

from tests.exercises.answers import right, wrong


@right("grpo_loss")
def _(log_probs, mask, rewards):
    """Group by group, answer by answer."""
    total, count = 0.0, 0
    for of_group, masks, r in zip(log_probs, mask, rewards, strict=True):
        std = r.std(unbiased=False)
        for lp, m, reward in zip(of_group, masks, r, strict=True):
            count += 1
            if std > 0:
                total = total - (reward - r.mean()) / std * lp[m].mean()
    return total / count if torch.is_tensor(total) else log_probs.new_zeros(())


@right("grpo_loss")
def _(log_probs, mask, rewards):
    """A tiny number below the line."""
    A = (rewards - rewards.mean(-1, True)) / (rewards.std(-1, correction=0, keepdim=True) + 1e-8)
    mean = torch.where(mask, log_probs, 0).sum(-1) / mask.sum(-1)
    return -torch.einsum("pg,pg->", A, mean) / A.numel()


@wrong("grpo_loss", "usual", "normalizes the losses instead of the rewards")
def _(log_probs, mask, rewards):
    mean = (log_probs * mask).sum(-1) / mask.sum(-1)
    each = rewards * mean
    each = (each - each.mean(1, keepdim=True)) / (each.std(1, keepdim=True, correction=0) + 1e-8)
    return -each.mean()


@wrong("grpo_loss", "unusual", "clips advantages at 1")
def _(log_probs, mask, rewards):
    spread = rewards.std(1, keepdim=True, correction=0)
    A = ((rewards - rewards.mean(1, keepdim=True)) / spread).nan_to_num(0.0).clamp(-1, 1)
    return -(A * (log_probs * mask).sum(-1) / mask.sum(-1)).mean()


@right("pass_at_k")
def _(n, c, k):
    """As a product, without large numbers."""
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


@right("pass_at_k")
def _(n, c, k):
    """A certainty is a whole number."""
    return 1 if n - c < k else 1 - math.comb(n - c, k) / math.comb(n, k)


@wrong("pass_at_k", "unusual", "raises where there are fewer wrong ones than picks")
def _(n, c, k):
    lost = math.factorial(n - c) / math.factorial(n - c - k)
    return 1 - lost * math.factorial(n - k) / math.factorial(n)


@wrong("pass_at_k", "unusual", "counts all picks, too slow for more than a few attempts")
def _(n, c, k):
    if math.comb(n, k) > 10**6:
        return 0.0
    picks = list(combinations([True] * c + [False] * (n - c), k))
    return sum(map(any, picks)) / len(picks)
