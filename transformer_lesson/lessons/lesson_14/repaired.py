"""Lesson 14: the next probe to take, the functions of `faulty`, repaired, and a probe for leaks."""

import math
from itertools import combinations

import torch
import torch.nn.functional as F


def next_probe(suspects, outcomes, costs):
    """Return the probe that tells most pairs of suspects apart for each minute that it costs."""
    best, most = None, 0.0
    for probe, says in outcomes.items():
        told = sum(says[one] != says[other] for one, other in combinations(suspects, 2))
        worth = told / costs[probe]
        if worth > most or (worth == most > 0 and costs[probe] < costs[best]):
            best, most = probe, worth
    return best


def shifted_loss(logits, ids, pad_id):
    """Return the mean cross-entropy of each next token that is no padding."""
    logits, labels = logits[:, :-1], ids[:, 1:]  # position i predicts token i + 1
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id)


def rate_at(step, steps_per_epoch, peak, warmup_epochs, epochs):
    """Return a step's learning rate: a line up to the peak, then a cosine down to a tenth of it."""
    warmup, total = warmup_epochs * steps_per_epoch, epochs * steps_per_epoch  # in steps
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1.0, (step - warmup) / (total - warmup))
    return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * progress)) / 2)


def evaluation_loss(model, batches, loss_function, pad_id):
    """Return the mean loss of all labels that are no padding, without dropout."""
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for inputs, labels in batches:
            real = int((labels != pad_id).sum())
            if real:  # the loss of padding alone is NaN
                total += float(loss_function(model(inputs), labels)) * real
                count += real
    model.train(was_training)
    return total / count


def sees_later(model, ids):
    """Return the positions that see later tokens, by changing one token after the other."""
    was_training = model.training
    model.eval()
    found = set()
    with torch.no_grad():
        before = model(ids)
        for place in range(1, ids.size(1)):
            changed = ids.clone()
            changed[:, place] = (ids[:, place] == 0).long()
            moved = (model(changed) - before).abs().amax((0, 2)) > 1e-4  # (n,)
            found |= {i for i in range(place) if moved[i]}
    model.train(was_training)
    return sorted(found)
