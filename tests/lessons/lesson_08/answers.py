"""What learners might write for the exercises of lesson 08."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong


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


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    # autograd, of PyTorch's own loss
    z = logits.detach().clone().requires_grad_()
    F.cross_entropy(
        z.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    ).backward()
    return z.grad


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    keep = labels.ne(pad_id)
    out = torch.zeros_like(logits)
    rows = logits[keep].softmax(-1) - smoothing / logits.shape[-1]
    rows[torch.arange(len(rows)), labels[keep]] -= 1 - smoothing
    out[keep] = rows / len(rows)
    return out


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    q = torch.eye(logits.size(-1), dtype=logits.dtype)[labels]
    q = q * (1 - smoothing) + smoothing / logits.size(-1)
    weight = (labels != pad_id).to(logits.dtype)
    return torch.einsum("bnv,bn->bnv", torch.exp(logits.log_softmax(-1)) - q, weight / weight.sum())


@wrong("loss_gradient", "unusual", "labels moved up by one, as a language model's are")
def _(logits, labels, smoothing, pad_id):
    labels = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], pad_id)], dim=1)
    q = F.one_hot(labels, logits.size(-1)) * (1 - smoothing) + smoothing / logits.size(-1)
    real = labels != pad_id
    return (logits.softmax(-1) - q) * real[..., None] / real.sum().clamp(min=1)


@right("training_step")
def _(model, batch, loss_function, optimizer, max_norm):
    # gradients that are gone are clear
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = None
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, error_if_nonfinite=True)
    optimizer.step()
    return loss.detach().cpu().item()


@wrong("training_step", "usual", "gradients are cleared at the end alone")
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
