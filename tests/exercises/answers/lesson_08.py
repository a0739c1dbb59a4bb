"""What learners might write for the exercises of lesson 08."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong


@right("shift_right")
def _(target):
    batch, n = target.shape
    inputs = torch.empty(batch, n - 1, dtype=target.dtype)
    labels = torch.empty_like(inputs)
    for b in range(batch):
        for t in range(n - 1):
            inputs[b, t] = target[b, t]
            labels[b, t] = target[b, t + 1]
    return inputs, labels


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    # it looks padding up, too: pad_id is one of the vocabulary's ids
    log_p = logits.log_softmax(dim=-1)
    nll = -torch.gather(log_p, 2, labels.unsqueeze(2)).squeeze(2)
    each = (1 - smoothing) * nll - smoothing * log_p.mean(dim=2)
    return each.masked_select(labels != pad_id).mean()


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    real = labels != pad_id
    log_p = logits[real].log_softmax(dim=-1)  # (real, vocab_size)
    nll = -log_p.gather(-1, labels[real][:, None]).squeeze(-1)
    return ((1 - smoothing) * nll - smoothing * log_p.mean(dim=-1)).mean()


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    keep = labels.flatten() != pad_id
    z = logits.reshape(-1, vocab_size)[keep].double()
    q = F.one_hot(labels.flatten()[keep], vocab_size).double() * (1 - smoothing)
    q += smoothing / vocab_size
    return (z.logsumexp(dim=1) - (q * z).sum(dim=1)).mean().to(logits.dtype)


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    # cross_entropy takes probabilities as targets too
    real = labels != pad_id
    q = torch.zeros_like(logits[real]).scatter_(1, labels[real].unsqueeze(1), 1.0)
    return F.cross_entropy(
        logits[real], torch.lerp(q, torch.full_like(q, 1 / q.size(1)), smoothing)
    )


@wrong("warmup_rate", "unusual", "falls in a straight line to 0 after the warm-up")
def _(step, d_model, warmup_steps):
    peak = (d_model * warmup_steps) ** -0.5
    if step <= warmup_steps:
        return peak * step / warmup_steps
    return peak * max(0.0, 1 - (step - warmup_steps) / (10 * warmup_steps))


@right("warmup_rate")
def _(step, d_model, warmup_steps):
    both = torch.tensor([1 / step, (step / warmup_steps) ** 2 / warmup_steps], dtype=torch.float64)
    return (both.min() / d_model).sqrt().item()


@right("training_step")
def _(model, batch, loss_function, optimizer, max_norm):
    model.train()
    with torch.enable_grad():
        loss = loss_function(model(*batch.inputs), batch.labels)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, error_if_nonfinite=True)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach().cpu().item()


@wrong("training_step", "unusual", "a forward pass without gradients")
def _(model, batch, loss_function, optimizer, max_norm):
    optimizer.zero_grad()
    with torch.no_grad():
        logits = model(*batch.inputs)
    loss = loss_function(logits, batch.labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("training_step", "unusual", "steps twice")
def _(model, batch, loss_function, optimizer, max_norm):
    optimizer.zero_grad()
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.step()
    return loss.item()
