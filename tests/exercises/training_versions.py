"""Right and wrong versions of lesson 08's exercises."""

import torch
import torch.nn.functional as F


def shifted(target, read=slice(None, -1), predict=slice(1, None)):
    return target[:, read], target[:, predict]


def rate(step, d_model, warmup_steps, choose=min, width=-0.5, rise=-1.5):
    return d_model**width * choose(step**-0.5, step * warmup_steps**rise)


def smoothed(
    logits, labels, smoothing, pad_id, prepare=None, others_only=False, counts=None, mean=True
):
    """By its target distribution, as a text about it would put it, with places for a bug."""
    vocab_size = logits.size(-1)
    target = F.one_hot(labels, vocab_size) * (1 - smoothing) + smoothing / vocab_size
    if others_only:
        hot = F.one_hot(labels, vocab_size)
        target = hot * (1 - smoothing) + (1 - hot) * smoothing / (vocab_size - 1)
    log_p = (logits if prepare is None else prepare(logits)).log_softmax(dim=-1)
    losses = -(target * log_p).sum(dim=-1)
    real = labels != pad_id if counts is None else counts(labels)
    return losses[real].mean() if mean else losses[real].sum()


def divided_by_all(logits, labels, smoothing, pad_id):
    """Padding adds nothing to the sum but is counted in the mean."""
    total = smoothed(logits, labels, smoothing, pad_id, mean=False)
    return total / labels.numel()


def with_pytorch(logits, labels, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


TRAINING_RIGHT = {
    "shift_right": [
        shifted,
        lambda target: list(target.unfold(1, target.size(1) - 1, 1).unbind(1)),
    ],
    "warmup_rate": [rate, lambda *inputs: torch.tensor(rate(*inputs))],
    "label_smoothed_loss": [
        smoothed,
        with_pytorch,
        lambda logits, *rest: with_pytorch(logits.double(), *rest),
    ],
}

TRAINING_WRONG = {
    "shift_right": {
        "swapped": lambda target: shifted(target)[::-1],
        "nothing is shifted": lambda target: (target, target),
        "inputs lose <bos>": lambda target: shifted(target, read=slice(1, None)),
        "labels keep <bos>": lambda target: shifted(target, predict=slice(None, -1)),
        "rolled": lambda target: (target, target.roll(-1, dims=1)),
        "<eos> of every row cut off": lambda target: shifted(target, predict=slice(1, -1)),
        "two steps ahead": lambda target: (target[:, :-2], target[:, 2:]),
        "only the labels": lambda target: shifted(target)[1],
    },
    "warmup_rate": {
        "the larger of the two": lambda *inputs: rate(*inputs, choose=max),
        "no d_model": lambda *inputs: rate(*inputs, width=0),
        "root of d_model": lambda *inputs: rate(*inputs, width=0.5),
        "no warm-up": lambda step, d_model, warmup_steps: (step * d_model) ** -0.5,
        "rises too steeply": lambda *inputs: rate(*inputs, rise=-0.5),
        "counts from 0": lambda step, *sizes: rate(max(step - 1, 1e-9), *sizes),
        "never falls": lambda step, d, warmup: d**-0.5 * min(step, warmup) * warmup**-1.5,
    },
    "label_smoothed_loss": {
        "softmax twice": lambda *inputs: smoothed(*inputs, prepare=lambda x: x.softmax(-1)),
        "the others share the rest": lambda *inputs: smoothed(*inputs, others_only=True),
        "padding counts": lambda *inputs: smoothed(*inputs, counts=lambda x: x == x),
        "pad_id taken for 0": lambda *inputs: smoothed(*inputs, counts=lambda x: x != 0),
        "mean over padding too": divided_by_all,
        "a sum": lambda *inputs: smoothed(*inputs, mean=False),
        "smoothing ignored": lambda logits, labels, _, pad: smoothed(logits, labels, 0.0, pad),
        "smoothing of the logits' mean": lambda logits, labels, smoothing, pad: (
            (1 - smoothing) * smoothed(logits, labels, 0.0, pad)
            - smoothing * logits[labels != pad].mean()
        ),
        "one loss per label": lambda logits, labels, *rest: F.cross_entropy(
            logits.flatten(0, -2), labels.flatten(), reduction="none"
        ),
    },
}
