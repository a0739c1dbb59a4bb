"""What learners might write for the exercises of lesson 08."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong

# shift_right(target)


@wrong("shift_right", "usual", "labels first, inputs second")
def _(target):
    return target[:, 1:], target[:, :-1]


@wrong("shift_right", "usual", "inputs and labels are the same")
def _(target):
    inputs = target[:, :-1]
    labels = target[:, :-1]
    return inputs, labels


@wrong("shift_right", "usual", "the inputs keep the last token: n instead of n - 1")
def _(target):
    decoder_input = target
    labels = target[:, 1:]
    return decoder_input, labels


@wrong("shift_right", "usual", "cuts sentences off, not tokens: the wrong axis")
def _(target):
    return target[:-1], target[1:]


@wrong("shift_right", "usual", "roll brings <bos> to the end of the labels")
def _(target):
    labels = torch.roll(target, shifts=-1, dims=1)
    return target, labels


@wrong("shift_right", "unusual", "cuts both ends off the labels")
def _(target):
    return target[:, :-1], target[:, 1:-1]


@wrong("shift_right", "unusual", "as Hugging Face: the target itself is the label, n long")
def _(target):
    shifted = torch.zeros_like(target)
    shifted[:, 1:] = target[:, :-1].clone()
    shifted[:, 0] = target[:, 0]
    return shifted, target


@wrong("shift_right", "unusual", "writes -100 over the padding 0 in the labels")
def _(target):
    inputs, labels = target[:, :-1], target[:, 1:]
    return inputs, labels.masked_fill(labels == 0, -100)


@wrong("shift_right", "unusual", "takes <eos> (id 2) out of the inputs")
def _(target):
    inputs = target[:, :-1].clone()
    inputs[inputs == 2] = 0
    return inputs, target[:, 1:]


@wrong("shift_right", "unusual", "a batch of one sentence, (1, n), loses its batch axis")
def _(target):
    inputs, labels = target[:, :-1].squeeze(), target[:, 1:].squeeze()
    return inputs, labels


@wrong("shift_right", "unusual", "moves by two tokens")
def _(target):
    return target[:, :-2], target[:, 2:]


@wrong("shift_right", "unusual", "the labels are one-hot rows")
def _(target):
    labels = F.one_hot(target[:, 1:])
    return target[:, :-1], labels


@wrong("shift_right", "unusual", "shifts the caller's tensor itself")
def _(target):
    inputs = target[:, :-1].clone()
    target[:, :-1] = target[:, 1:].clone()
    return inputs, target[:, :-1]


@wrong(
    "shift_right",
    "unusual",
    "drops columns of padding, if every row ends in <pad> (0)",
)
def _(target):
    real = (target != 0).any(dim=0)
    target = target[:, real]
    return target[:, :-1], target[:, 1:]


@wrong("shift_right", "unusual", "takes <eos> (id 2) out of each row for the inputs")
def _(target):
    inputs = target[target != 2].view(target.size(0), -1)
    labels = target[target != 1].view(target.size(0), -1)
    return inputs, labels


@wrong("shift_right", "pair", "labels first", "moved by two tokens")
def _(target):
    inputs = target[:, :-2]
    labels = target[:, 2:]
    return labels, inputs


@wrong("shift_right", "pair", "the inputs keep the last token", "-100 over the padding 0")
def _(target):
    labels = target[:, 1:].clone()
    labels[labels == 0] = -100
    return target, labels


@wrong("shift_right", "pair", "cut along the batch axis", "exchanged")
def _(target):
    inputs, labels = target[1:], target[:-1]
    return inputs, labels


@right("shift_right")
def _(target):
    return target[:, :-1], target[:, 1:]


@right("shift_right")
def _(target):
    inputs, labels = target.unfold(1, 2, 1).unbind(dim=-1)
    return inputs, labels


@right("shift_right")
def _(target):
    n = target.size(1)
    return target.narrow(1, 0, n - 1), target.narrow(1, 1, n - 1)


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


# label_smoothed_loss(logits, labels, smoothing, pad_id)


@wrong("label_smoothed_loss", "usual", "padding counts")
def _(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    logits, labels = logits.reshape(-1, vocab_size), labels.reshape(-1)
    return F.cross_entropy(logits, labels, label_smoothing=smoothing)


@wrong("label_smoothed_loss", "usual", "divides by all labels, padding included")
def _(logits, labels, smoothing, pad_id):
    each = F.cross_entropy(
        logits.transpose(1, 2),
        labels,
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="none",
    )
    return each.mean()


@wrong("label_smoothed_loss", "usual", "the label keeps 1 - smoothing, the others share the rest")
def _(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    log_p = logits.log_softmax(dim=-1)
    q = torch.full_like(log_p, smoothing / (vocab_size - 1))
    q.scatter_(-1, labels.unsqueeze(-1), 1.0 - smoothing)
    loss = -(q * log_p).sum(dim=-1)
    return loss[labels != pad_id].mean()


@wrong("label_smoothed_loss", "usual", "the sum instead of the mean")
def _(logits, labels, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


@wrong("label_smoothed_loss", "usual", "no smoothing")
def _(logits, labels, smoothing, pad_id):
    logits = logits.view(-1, logits.shape[-1])
    return F.cross_entropy(logits, labels.view(-1), ignore_index=pad_id)


@wrong("label_smoothed_loss", "usual", "softmax before cross_entropy: two of them")
def _(logits, labels, smoothing, pad_id):
    probabilities = F.softmax(logits, dim=-1)
    criterion = nn.CrossEntropyLoss(ignore_index=pad_id, label_smoothing=smoothing)
    return criterion(probabilities.flatten(0, 1), labels.flatten())


@wrong("label_smoothed_loss", "usual", "padding is always 0")
def _(logits, labels, smoothing, pad_id):
    log_p = F.log_softmax(logits, dim=-1)
    nll = -log_p.gather(-1, labels[..., None]).squeeze(-1)
    smooth = -log_p.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * smooth
    mask = (labels != 0).float()
    return (loss * mask).sum() / mask.sum()


@wrong("label_smoothed_loss", "usual", "the two weights are exchanged")
def _(logits, labels, smoothing, pad_id):
    real = labels != pad_id
    log_p = logits[real].log_softmax(dim=-1)
    wrong_part = -log_p.gather(1, labels[real][:, None])[:, 0]
    even_part = -log_p.mean(dim=1)
    return (smoothing * wrong_part + (1 - smoothing) * even_part).mean()


@wrong("label_smoothed_loss", "unusual", "a naive exponential is inf for logits above 88")
def _(logits, labels, smoothing, pad_id):
    real = labels != pad_id
    z, y = logits[real], labels[real]
    p = z.exp() / z.exp().sum(dim=-1, keepdim=True)
    log_p = torch.log(p)
    picked = log_p[torch.arange(len(y)), y]
    return -((1 - smoothing) * picked + smoothing * log_p.mean(dim=-1)).mean()


@wrong(
    "label_smoothed_loss",
    "unusual",
    "log(p + 1e-9) ends at 20.7 nats: a label 30 below the best logit",
)
def _(logits, labels, smoothing, pad_id):
    p = logits.softmax(dim=-1)
    log_p = torch.log(p + 1e-9)
    q = F.one_hot(labels.clamp(min=0), logits.size(-1)) * (1 - smoothing)
    q = q + smoothing / logits.size(-1)
    each = -(q * log_p).sum(dim=-1)
    real = labels != pad_id
    return (each * real).sum() / real.sum()


@wrong("label_smoothed_loss", "unusual", "the mean of each sentence's mean")
def _(logits, labels, smoothing, pad_id):
    losses = []
    for z, y in zip(logits, labels, strict=True):
        losses.append(F.cross_entropy(z, y, ignore_index=pad_id, label_smoothing=smoothing))
    return torch.stack(losses).nanmean()


@wrong("label_smoothed_loss", "unusual", "bits instead of nats")
def _(logits, labels, smoothing, pad_id):
    loss = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
    return loss / math.log(2)


@wrong(
    "label_smoothed_loss", "unusual", "the share for padding is 0, as in the Annotated Transformer"
)
def _(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    log_p = logits.log_softmax(dim=-1)
    q = torch.full_like(log_p, smoothing / (vocab_size - 2))
    q.scatter_(2, labels[..., None], 1 - smoothing)
    q[..., pad_id] = 0
    each = F.kl_div(log_p, q, reduction="none").sum(dim=-1)
    return each[labels != pad_id].mean()


@wrong("label_smoothed_loss", "unusual", "KL divergence: the entropy of the target is missing")
def _(logits, labels, smoothing, pad_id):
    real = labels != pad_id
    vocab_size = logits.size(-1)
    q = F.one_hot(labels[real], vocab_size) * (1 - smoothing) + smoothing / vocab_size
    return F.kl_div(logits[real].log_softmax(dim=-1), q, reduction="batchmean")


@wrong("label_smoothed_loss", "unusual", "adds the spread on top: the label's share stays 1")
def _(logits, labels, smoothing, pad_id):
    log_p = logits.log_softmax(-1)
    nll = F.nll_loss(log_p.flatten(0, 1), labels.flatten(), ignore_index=pad_id)
    spread = -log_p.mean(dim=-1)[labels != pad_id].mean()
    return nll + smoothing * spread


@wrong("label_smoothed_loss", "unusual", "one number per label instead of one for all")
def _(logits, labels, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="none",
    ).view(labels.shape)


@wrong("label_smoothed_loss", "unusual", "a Python number, which has no gradient")
def _(logits, labels, smoothing, pad_id):
    loss = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
    return loss.item()


@wrong("label_smoothed_loss", "unusual", "softmax over the positions, not over the vocabulary")
def _(logits, labels, smoothing, pad_id):
    log_p = F.log_softmax(logits, dim=1)
    real = labels != pad_id
    nll = -log_p.gather(2, labels.unsqueeze(2)).squeeze(2)
    even = -log_p.mean(dim=2)
    return ((1 - smoothing) * nll + smoothing * even)[real].mean()


@wrong("label_smoothed_loss", "unusual", "smoothing is always 0.1")
def _(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    loss_function = nn.CrossEntropyLoss(ignore_index=pad_id, label_smoothing=0.1)
    return loss_function(logits.reshape(-1, vocab_size), labels.reshape(-1))


@wrong(
    "label_smoothed_loss", "unusual", "the class axis stays behind: flattened in the wrong order"
)
def _(logits, labels, smoothing, pad_id):
    batch, n, vocab_size = logits.shape
    logits = logits.reshape(batch, vocab_size, n)
    return F.cross_entropy(logits, labels, ignore_index=pad_id, label_smoothing=smoothing)


@wrong("label_smoothed_loss", "unusual", "the smoothed part counts padding")
def _(logits, labels, smoothing, pad_id):
    flat, y = logits.flatten(0, 1), labels.flatten()
    hard = F.cross_entropy(flat, y, ignore_index=pad_id)
    soft = -flat.log_softmax(dim=-1).mean()
    return (1 - smoothing) * hard + smoothing * soft


@wrong("label_smoothed_loss", "unusual", "a result of shape (1,)")
def _(logits, labels, smoothing, pad_id):
    loss = F.cross_entropy(
        logits.transpose(1, 2), labels, ignore_index=pad_id, label_smoothing=smoothing
    )
    return loss.reshape(1)


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    # it looks padding up, too: pad_id is one of the vocabulary's ids
    log_p = logits.log_softmax(dim=-1)
    nll = -torch.gather(log_p, 2, labels.unsqueeze(2)).squeeze(2)
    each = (1 - smoothing) * nll - smoothing * log_p.mean(dim=2)
    return each.masked_select(labels != pad_id).mean()


@wrong(
    "label_smoothed_loss",
    "unusual",
    "a new tensor around the number, so logits get no gradient",
)
def _(logits, labels, smoothing, pad_id):
    losses = []
    for z, y in zip(logits.flatten(0, 1), labels.flatten().tolist(), strict=True):
        if y != pad_id:
            log_p = z.log_softmax(dim=0)
            losses.append((-(1 - smoothing) * log_p[y] - smoothing * log_p.mean()).item())
    return torch.tensor(sum(losses) / len(losses))


@wrong("label_smoothed_loss", "pair", "padding counts", "no smoothing")
def _(logits, labels, smoothing, pad_id):
    return F.cross_entropy(logits.transpose(-1, -2), labels)


@wrong("label_smoothed_loss", "pair", "the sum", "the others share the rest")
def _(logits, labels, smoothing, pad_id):
    real = labels != pad_id
    z, y = logits[real], labels[real]
    log_p = z.log_softmax(-1)
    hit = log_p.gather(1, y[:, None]).squeeze(1)
    rest = (log_p.sum(1) - hit) / (z.size(1) - 1)
    return -((1 - smoothing) * hit + smoothing * rest).sum()


@wrong("label_smoothed_loss", "pair", "two softmaxes", "divides by all labels")
def _(logits, labels, smoothing, pad_id):
    p = logits.softmax(dim=-1)
    loss = F.cross_entropy(
        p.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return loss / labels.numel()


@wrong("label_smoothed_loss", "pair", "bits instead of nats", "padding is always 0")
def _(logits, labels, smoothing, pad_id):
    log_p = torch.log2(logits.softmax(dim=-1))
    target = F.one_hot(labels, logits.size(-1)).to(log_p.dtype)
    target = target * (1 - smoothing) + smoothing / logits.size(-1)
    loss = torch.sum(-target * log_p, dim=-1)
    return loss.masked_select(labels != 0).mean()


@wrong("label_smoothed_loss", "pair", "mean of the sentences' means", "weights exchanged")
def _(logits, labels, smoothing, pad_id):
    log_p = logits.log_softmax(dim=-1)
    real = (labels != pad_id).to(log_p.dtype)
    nll = -log_p.gather(-1, labels[..., None])[..., 0]
    each = smoothing * nll + (1 - smoothing) * -log_p.mean(-1)
    per_sentence = (each * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return per_sentence.mean()


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


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
    total, count = logits.new_zeros(()), 0
    for b in range(labels.size(0)):
        for t in range(labels.size(1)):
            y = int(labels[b, t])
            if y == pad_id:
                continue
            losses = -torch.log_softmax(logits[b, t], dim=0)
            total = total + (1 - smoothing) * losses[y] + smoothing * losses.mean()
            count += 1
    return total / count


@right("label_smoothed_loss")
def _(logits, labels, smoothing, pad_id):
    # cross_entropy takes probabilities as targets too
    real = labels != pad_id
    q = torch.zeros_like(logits[real]).scatter_(1, labels[real].unsqueeze(1), 1.0)
    return F.cross_entropy(
        logits[real], torch.lerp(q, torch.full_like(q, 1 / q.size(1)), smoothing)
    )


# warmup_rate(step, d_model, warmup_steps)


@wrong("warmup_rate", "usual", "max instead of min")
def _(step, d_model, warmup_steps):
    return d_model**-0.5 * max(step**-0.5, step * warmup_steps**-1.5)


@wrong("warmup_rate", "usual", "the factor of d_model is missing")
def _(step, d_model, warmup_steps):
    return min(1 / math.sqrt(step), step / warmup_steps**1.5)


@wrong("warmup_rate", "usual", "multiplies by the root of d_model")
def _(step, d_model, warmup_steps):
    arg1 = 1 / step**0.5
    arg2 = step * warmup_steps**-1.5
    return math.sqrt(d_model) * min(arg1, arg2)


@wrong("warmup_rate", "usual", "the exponent of the warm-up is -0.5, not -1.5")
def _(step, d_model, warmup_steps):
    return d_model ** (-0.5) * min(step ** (-0.5), step * warmup_steps ** (-0.5))


@wrong("warmup_rate", "usual", "counts steps from 0")
def _(step, d_model, warmup_steps):
    step = step + 1
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@wrong("warmup_rate", "usual", "the warm-up has the slope 1 / warmup_steps")
def _(step, d_model, warmup_steps):
    return (d_model**-0.5) * min(step**-0.5, step / warmup_steps)


@wrong("warmup_rate", "unusual", "after the warm-up the rate stays")
def _(step, d_model, warmup_steps):
    step = min(step, warmup_steps)
    return step * warmup_steps**-1.5 / d_model**0.5


@wrong("warmup_rate", "unusual", "** 1 / 2 divides by half of d_model")
def _(step, d_model, warmup_steps):
    return min(step**-0.5, step * warmup_steps**-1.5) / (d_model**1 / 2)


@wrong("warmup_rate", "unusual", "falls in a straight line to 0 after the warm-up")
def _(step, d_model, warmup_steps):
    peak = (d_model * warmup_steps) ** -0.5
    if step <= warmup_steps:
        return peak * step / warmup_steps
    return peak * max(0.0, 1 - (step - warmup_steps) / (10 * warmup_steps))


@wrong("warmup_rate", "unusual", "d_model is always 512")
def _(step, d_model, warmup_steps):
    return 512**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@wrong("warmup_rate", "unusual", "the paper's 4000 for every warm-up")
def _(step, d_model, warmup_steps):
    warmup_steps = 4000
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@wrong("warmup_rate", "unusual", "the highest rate is 1, as LambdaLR's factors")
def _(step, d_model, warmup_steps):
    factor = min(step**-0.5, step * warmup_steps**-1.5)
    return factor / warmup_steps**-0.5


@wrong("warmup_rate", "unusual", "a step before the first: step - 1")
def _(step, d_model, warmup_steps):
    done = step - 1
    if done < 1:
        return 0.0
    return d_model**-0.5 * min(done**-0.5, done * warmup_steps**-1.5)


@wrong("warmup_rate", "unusual", "whole-number division: 0 until the end of the warm-up")
def _(step, d_model, warmup_steps):
    peak = 1 / math.sqrt(d_model * warmup_steps)
    if step < warmup_steps:
        return peak * (step // warmup_steps)
    return peak * math.sqrt(warmup_steps / step)


@wrong("warmup_rate", "unusual", "rounded to six digits after the point")
def _(step, d_model, warmup_steps):
    rate = d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    return round(rate, 6)


@wrong("warmup_rate", "unusual", "the branches are the wrong way round")
def _(step, d_model, warmup_steps):
    scale = 1 / d_model**0.5
    if step < warmup_steps:
        return scale * step**-0.5
    return scale * step * warmup_steps**-1.5


@wrong("warmup_rate", "unusual", "the step's exponent lost its minus: the rate rises for ever")
def _(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**0.5, step * warmup_steps**-1.5)


@wrong("warmup_rate", "unusual", "returns None where step and warmup_steps are equal")
def _(step, d_model, warmup_steps):
    if step < warmup_steps:
        return d_model**-0.5 * step * warmup_steps**-1.5
    elif step > warmup_steps:
        return d_model**-0.5 * step**-0.5


@wrong("warmup_rate", "unusual", "falls with 1 / step after the warm-up, not with the root")
def _(step, d_model, warmup_steps):
    peak = (d_model * warmup_steps) ** -0.5
    return peak * min(step / warmup_steps, warmup_steps / step)


@wrong("warmup_rate", "pair", "max instead of min", "no d_model")
def _(step, d_model, warmup_steps):
    candidates = [step**-0.5, step * warmup_steps**-1.5]
    return max(candidates)


@wrong("warmup_rate", "pair", "times the root of d_model", "steps counted from 0")
def _(step, d_model, warmup_steps):
    t = step + 1
    return d_model**0.5 * min(t**-0.5, t * warmup_steps**-1.5)


@wrong("warmup_rate", "pair", "d_model**-1 instead of its root", "slope 1 / warmup_steps")
def _(step, d_model, warmup_steps):
    warm = step / warmup_steps
    decay = 1 / math.sqrt(step)
    return min(warm, decay) / d_model


@wrong("warmup_rate", "pair", "stays after the warm-up", "the factor of d_model is missing")
def _(step, d_model, warmup_steps):
    if step > warmup_steps:
        return warmup_steps**-0.5
    return step * warmup_steps**-1.5


@right("warmup_rate")
def _(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@right("warmup_rate")
def _(step, d_model, warmup_steps):
    peak = 1 / math.sqrt(d_model * warmup_steps)
    if step <= warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(warmup_steps / step)


@right("warmup_rate")
def _(step, d_model, warmup_steps):
    falling = -0.5 * math.log(step)
    rising = math.log(step) - 1.5 * math.log(warmup_steps)
    return math.exp(min(falling, rising) - 0.5 * math.log(d_model))


@right("warmup_rate")
def _(step, d_model, warmup_steps):
    both = torch.tensor([1 / step, (step / warmup_steps) ** 2 / warmup_steps], dtype=torch.float64)
    return (both.min() / d_model).sqrt().item()


# training_step(model, batch, loss_function, optimizer, max_norm)


@right("training_step")
def _(model, batch, loss_function, optimizer, max_norm):
    optimizer.zero_grad(set_to_none=False)
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
    optimizer.step()
    return loss.item()


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


@wrong("training_step", "usual", "gradients are never cleared: they add up")
def _(model, batch, loss_function, optimizer, max_norm):
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@wrong("training_step", "usual", "the gradients are cleared between backward and step")
def _(model, batch, loss_function, optimizer, max_norm):
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


@wrong("training_step", "usual", "forgets to clip")
def _(model, batch, loss_function, optimizer, max_norm):
    optimizer.zero_grad()
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("training_step", "usual", "returns the tensor, with its graph")
def _(model, batch, loss_function, optimizer, max_norm):
    optimizer.zero_grad()
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss


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
