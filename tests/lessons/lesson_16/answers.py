"""What learners might write for the exercises of lesson 16."""

import math
import re
from itertools import combinations

import torch

from tests.exercises.answers import right, wrong


@right("grpo_loss")
def _(log_probs, mask, rewards):
    """A tiny number below the line."""
    A = (rewards - rewards.mean(-1, True)) / (rewards.std(-1, correction=0, keepdim=True) + 1e-8)
    mean = torch.where(mask, log_probs, 0).sum(-1) / mask.sum(-1)
    return -torch.einsum("pg,pg->", A, mean) / A.numel()


@wrong("grpo_loss", "unusual", "clips advantages at 1")
def _(log_probs, mask, rewards):
    spread = rewards.std(1, keepdim=True, correction=0)
    A = ((rewards - rewards.mean(1, keepdim=True)) / spread).nan_to_num(0.0).clamp(-1, 1)
    return -(A * (log_probs * mask).sum(-1) / mask.sum(-1)).mean()


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


@right("asking")
def _(write, prompt, calculate):
    """Recursion, and a pattern for the question."""

    def go(text, left):
        new = write(text)
        found = re.search(r"\[([^\[]*)\]\Z", new)
        if not found:
            return new
        new += calculate(found[1])
        return new + (go(text + new, left - 1) if left > 1 else "")

    return go(prompt, 4)


@wrong("asking", "usual", "rindex where nothing opened")
def _(write, prompt, calculate):
    text = prompt
    for _ in range(4):
        text += write(text)
        if not text.endswith("]"):
            break
        text += calculate(text[text.rindex("[") + 1 : -1])
    return text.removeprefix(prompt)


@wrong("asking", "unusual", "reckons by itself")
def _(write, prompt, calculate):
    text = prompt
    for _ in range(4):
        new = write(text)
        text += new
        if not (new.endswith("]") and "[" in new):
            break
        a, plus, b = new[new.rindex("[") + 1 : -1].partition("+")
        text += f"{int(a or 0) + int(b or 0)}"
    return text.removeprefix(prompt)
