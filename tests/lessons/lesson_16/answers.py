"""What learners might write for the exercises of lesson 16."""

import re

import torch

from tests.exercises.answers import right, wrong


@right("dpo_loss")
def _(log_probs, reference, mask, beta):
    """A softmax over the two answers of a pair, and where instead of a product."""
    gains = torch.where(mask, log_probs - reference, 0.0).sum(-1)
    return torch.nn.functional.cross_entropy(beta * gains, torch.zeros(len(gains)).long())


@right("dpo_loss")
def _(log_probs, reference, mask, beta):
    """log(1 + exp(-z))."""
    gains = ((log_probs - reference) * mask).sum(-1)
    return torch.nn.functional.softplus(-beta * (gains[:, 0] - gains[:, 1])).mean()


@wrong("dpo_loss", "usual", "the mean of both answers' log-softmax")
def _(log_probs, reference, mask, beta):
    gains = ((log_probs - reference) * mask).sum(-1)
    return -(beta * gains).log_softmax(1).mean()


@wrong("dpo_loss", "unusual", "gains cut off at 1")
def _(log_probs, reference, mask, beta):
    gains = ((log_probs - reference) * mask).sum(-1).clamp(max=1)
    return -torch.nn.functional.logsigmoid(beta * (gains[:, 0] - gains[:, 1])).mean()


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
