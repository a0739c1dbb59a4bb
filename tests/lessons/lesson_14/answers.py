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


@right("next_probe")
def _(suspects, outcomes, costs):
    scores = []
    for position, probe in enumerate(outcomes):
        count = 0
        for i in range(len(suspects)):
            for j in range(i + 1, len(suspects)):
                if outcomes[probe][suspects[i]] != outcomes[probe][suspects[j]]:
                    count += 1
        if count:
            scores.append((-count / costs[probe], costs[probe], position, probe))
    return sorted(scores)[0][-1] if scores else None


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
    total, count = torch.zeros((), dtype=logits.dtype), 0
    for text, tokens in zip(logits, ids, strict=True):
        for i in range(len(tokens) - 1):
            if tokens[i + 1] != pad_id:
                total = total + text[i].logsumexp(0) - text[i, tokens[i + 1]]
                count += 1
    return total / count


@right("shifted_loss")
def _(logits, ids, pad_id):
    labels = ids[:, 1:]
    losses = F.cross_entropy(logits[:, :-1].permute(0, 2, 1), labels, reduction="none")
    real = (labels != pad_id).to(losses.dtype)
    return (losses * real).sum() / real.sum()


@right("shifted_loss")
def _(logits, ids, pad_id):
    labels = torch.cat([ids[:, 1:], torch.full_like(ids[:, :1], pad_id)], dim=1)
    labels = labels.masked_fill(labels == pad_id, -100)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


@wrong("shifted_loss", "unusual", "sets labels to -100 in the argument itself")
def _(logits, ids, pad_id):
    ids[ids == pad_id] = -100
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@wrong("shifted_loss", "unusual", "reshapes the axes for the loss instead of moving them")
def _(logits, ids, pad_id):
    logits, labels = logits[:, :-1], ids[:, 1:]
    batch, n, vocab_size = logits.shape
    return F.cross_entropy(logits.reshape(batch, vocab_size, n), labels, ignore_index=pad_id)


@wrong("shifted_loss", "unusual", "smooths the labels by a tenth")
def _(logits, ids, pad_id):
    return F.cross_entropy(
        logits[:, :-1].flatten(0, 1),
        ids[:, 1:].flatten(),
        ignore_index=pad_id,
        label_smoothing=0.1,
    )


@right("rate_at")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    epoch, end = step / steps_per_epoch, epochs
    if epoch < warmup_epochs:
        return peak * (epoch + 1 / steps_per_epoch) / warmup_epochs
    if epoch >= end:
        return peak / 10
    part = (epoch - warmup_epochs) / (end - warmup_epochs)
    return peak / 10 + (peak - peak / 10) * math.cos(math.pi * part / 2) ** 2


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


@wrong("rate_at", "unusual", "takes the smaller of climb and cosine over the whole training")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup, total = warmup_epochs * steps_per_epoch, epochs * steps_per_epoch
    fall = 0.1 + 0.45 * (1 + math.cos(math.pi * min(1, step / total)))
    return peak * min((step + 1) / warmup, fall)


@wrong("rate_at", "unusual", "gives degrees to the cosine")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup, total = warmup_epochs * steps_per_epoch, epochs * steps_per_epoch
    if step < warmup:
        return peak * (step + 1) / warmup
    part = min(1, (step - warmup) / (total - warmup))
    return peak * (0.1 + 0.45 * (1 + math.cos(180 * part)))


@right("evaluation_loss")
def _(model, batches, loss_function, pad_id):
    mode = model.training
    model.train(False)
    with torch.inference_mode():
        sums = [(loss_function(model(x), y), (y != pad_id).sum()) for x, y in batches]
    if mode:
        model.train()
    weights = torch.stack([count for _, count in sums]).double()
    losses = torch.stack([loss for loss, _ in sums]).double()
    return (losses * weights).sum().item() / weights.sum().item()


@right("evaluation_loss")
@torch.no_grad()
def _(model, batches, loss_function, pad_id):
    before = model.training
    model.eval()
    mean, seen = 0.0, 0
    for inputs, labels in batches:
        count = labels.ne(pad_id).sum().item()
        seen += count
        mean += (loss_function(model(inputs), labels).item() - mean) * count / seen
    model.train(before)
    return mean


@wrong("evaluation_loss", "unusual", "switches the dropout off in the first batch only")
def _(model, batches, loss_function, pad_id):
    mode, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for inputs, labels in batches:
            real = (labels != pad_id).sum().item()
            total += loss_function(model(inputs), labels).item() * real
            count += real
            model.train()
    model.train(mode)
    return total / count


@wrong("evaluation_loss", "unusual", "averages logits through a moving mean")
def _(model, batches, loss_function, pad_id):
    mode = model.training
    model.eval()
    mean = None
    with torch.no_grad():
        for inputs, labels in batches:
            loss = loss_function(model(inputs), labels).item()
            mean = loss if mean is None else 0.9 * mean + 0.1 * loss
    model.train(mode)
    return mean


@wrong("evaluation_loss", "unusual", "feeds the labels to the model")
def _(model, batches, loss_function, pad_id):
    mode, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for _, labels in batches:
            real = (labels != pad_id).sum().item()
            total += loss_function(model(labels), labels).item() * real
            count += real
    model.train(mode)
    return total / count
