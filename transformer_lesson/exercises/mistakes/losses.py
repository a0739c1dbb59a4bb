"""Mistakes in lesson 08: the loss with smoothed labels."""

import torch.nn.functional as F

from transformer_lesson.exercises.specification import Mistake


def spread_evenly(labels, vocab_size, smoothing):
    """The target distribution: all tokens share the smoothing, the label too."""
    return F.one_hot(labels, vocab_size) * (1 - smoothing) + smoothing / vocab_size


def _spread_among_others(labels, vocab_size, smoothing):
    hot = F.one_hot(labels, vocab_size)
    return hot * (1 - smoothing) + (1 - hot) * smoothing / (vocab_size - 1)


def _swapped(labels, vocab_size, smoothing):
    return spread_evenly(labels, vocab_size, 1 - smoothing)


def smoothed(
    logits,
    labels,
    smoothing,
    pad_id,
    log_p=lambda logits: logits.log_softmax(dim=-1),
    target=spread_evenly,
    counts=lambda labels, pad_id: labels != pad_id,
    reduce=lambda losses: losses.mean(),
):
    """The loss from its target distribution, with places for a bug."""
    losses = -(target(labels, logits.size(-1), smoothing) * log_p(logits)).sum(dim=-1)
    return reduce(losses[counts(labels, pad_id)])


def _divided_by_all(logits, labels, smoothing, pad_id):
    total = smoothed(logits, labels, smoothing, pad_id, reduce=lambda losses: losses.sum())
    return total / labels.numel()


def _padding_in_the_smoothing(logits, labels, smoothing, pad_id):
    hard = smoothed(logits, labels, 0.0, pad_id)
    return (1 - smoothing) * hard - smoothing * logits.log_softmax(dim=-1).mean()


def _raw_logits_spread(logits, labels, smoothing, pad_id):
    hard = smoothed(logits, labels, 0.0, pad_id)
    return (1 - smoothing) * hard - smoothing * logits[labels != pad_id].mean()


def _labels_overwritten(logits, labels, smoothing, pad_id):
    labels[labels == pad_id] = -100
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), label_smoothing=smoothing)


LOSS_MISTAKES = {
    "label_smoothed_loss": (
        Mistake(
            "a second softmax",
            "The logits become probabilities before `log_softmax` or `cross_entropy` gets them. "
            "With 1,000 tokens even a perfect prediction costs 5.91 then. Hand on the logits as "
            "they are.",
            lambda *i: smoothed(*i, log_p=lambda x: x.softmax(-1).log_softmax(-1)),
        ),
        Mistake(
            "smoothing shared among the other tokens only",
            "Many texts tell it so, but here, as in PyTorch, the label has its part of the "
            "smoothing too: for logits 2, 0, 0, 0 it makes 0.4908 instead of 0.5408. Take the "
            "mean over the whole vocabulary.",
            lambda *inputs: smoothed(*inputs, target=_spread_among_others),
        ),
        Mistake(
            "the two shares in each other's place",
            "The label gets the small share and all tokens together the large one, so the model "
            "learns to be unsure. Which of the two terms is multiplied by 1 - smoothing?",
            lambda *inputs: smoothed(*inputs, target=_swapped),
        ),
        Mistake(
            "a loss that counts padding",
            "The model gets most of its reward for predicting padding after padding, and short "
            "sentences drown. Keep only the positions whose label is not `pad_id`.",
            lambda *i: smoothed(*i, counts=lambda labels, pad_id: labels == labels),
        ),
        Mistake(
            "padding taken for id 0",
            "Another tokenizer may pad with another id: then padding counts, and the word with id "
            "0 is never learned. Compare with the argument.",
            lambda *i: smoothed(*i, counts=lambda labels, pad_id: labels != 0),
        ),
        Mistake(
            "smoothing that leaks to padding",
            "The cross-entropy leaves padding out, but the mean of `-log_p` runs over all "
            "positions, so padding still pulls on the weights. Select the real positions before "
            "both terms.",
            _padding_in_the_smoothing,
        ),
        Mistake(
            "a mean over padding too",
            "Padding adds nothing to your sum but is counted when you divide, so a batch with "
            "more of it looks easier and teaches less. Divide by the number of real labels.",
            _divided_by_all,
        ),
        Mistake(
            "a sum in the place of the mean",
            "The loss, and with it every step, grows with the number of tokens in the batch, so "
            "no learning rate fits all batches. What do you divide by?",
            lambda *inputs: smoothed(*inputs, reduce=lambda losses: losses.sum()),
        ),
        Mistake(
            "a loss without smoothing",
            "The model is driven to be certain of every word, even where several would do. Which "
            "argument has no part in your result?",
            lambda logits, labels, _, pad_id: smoothed(logits, labels, 0.0, pad_id),
        ),
        Mistake(
            "smoothing from raw logits",
            "Your second term is the mean of the logits, which can fall without end, so the loss "
            "goes far below 0. It must be the mean of log-probabilities, `log_p`.",
            _raw_logits_spread,
        ),
        Mistake(
            "a loss without its minus sign",
            "A log-probability is below 0, and training makes the loss small: this one would "
            "teach the model to be wrong. Which sign has a cost?",
            lambda *inputs: -smoothed(*inputs),
        ),
        Mistake(
            "one loss for each label",
            "`backward` needs a single number. What do you take of the losses of all real labels?",
            lambda *inputs: smoothed(*inputs, reduce=lambda losses: losses),
        ),
        Mistake(
            "writing -100 into the caller's labels",
            "The loss is right, but the labels are changed for good, and the next look at this "
            "batch meets -100. Say `ignore_index=pad_id`, or select the real positions.",
            _labels_overwritten,
        ),
    ),
}
