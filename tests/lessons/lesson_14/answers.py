"""What learners might write for the exercises of lesson 14."""

import math
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("next_probe")
def _(suspects, outcomes, costs):
    def worth(probe):
        groups = Counter(outcomes[probe][suspect] for suspect in suspects).values()
        pairs = (len(suspects) ** 2 - sum(size**2 for size in groups)) / 2
        return pairs / costs[probe]

    best = max(outcomes, key=lambda probe: (worth(probe), -costs[probe]))
    return best if worth(best) > 0 else None


@wrong("next_probe", "unusual", "splits into halves as evenly as possible, whatever the price")
def _(suspects, outcomes, costs):
    def unevenness(probe):
        groups = Counter(outcomes[probe][one] for one in suspects)
        return max(groups.values()) / len(suspects)

    return min(outcomes, key=unevenness)


@wrong("next_probe", "unusual", "takes ruled out suspects off the list for good")
def _(suspects, outcomes, costs):
    best, most = None, 0
    while len(suspects) > 1:
        one = suspects.pop()
        for probe in outcomes:
            told = sum(outcomes[probe][one] != outcomes[probe][other] for other in suspects)
            if told / costs[probe] > most:
                best, most = probe, told / costs[probe]
    return best


@right("shifted_loss")
def _(logits, ids, pad_id):
    labels = ids[:, 1:]
    losses = F.cross_entropy(logits[:, :-1].permute(0, 2, 1), labels, reduction="none")
    real = (labels != pad_id).to(losses.dtype)
    return (losses * real).sum() / real.sum()


@right("rate_at")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup = warmup_epochs * steps_per_epoch
    grid = np.arange(epochs * steps_per_epoch + 1)
    climb = peak * (grid + 1) / warmup
    part = (grid - warmup) / (grid[-1] - warmup)
    fall = 0.1 * peak + 0.45 * peak * (1 + np.cos(np.pi * part))
    return np.where(grid < warmup, climb, fall)[min(step, grid[-1])].item()


@wrong("rate_at", "unusual", "rounds the part of the way to whole epochs")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup = warmup_epochs * steps_per_epoch
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) // steps_per_epoch
    part = min(1, done / (epochs - warmup_epochs))
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))


@right("sees_later")
def _(model, ids):
    """Asks each position: changes all tokens behind it, one in each copy of the batch."""
    mode, n = model.training, ids.shape[1]
    model.train(False)
    with torch.inference_mode():
        base, seeing = model(ids), []
        for position in range(n - 1):
            moves = []
            for token in range(position + 1, n):
                other = ids.detach().clone()
                other[:, token] = torch.where(other[:, token] == 0, 1, 0)
                moves.append((model(other) - base)[:, position].abs().max().item())
            if max(moves) > 1e-4:
                seeing.append(position)
    model.train(mode)
    return seeing


@wrong("sees_later", "unusual", "a text cut short where a token should change")
def _(model, ids):
    mode = model.training
    model.eval()
    with torch.no_grad():
        whole = model(ids)
        found = [
            i
            for i in range(ids.size(1) - 1)
            if (model(ids[:, : i + 1])[:, i] - whole[:, i]).abs().max() > 1
        ]
    model.train(mode)
    return found
