"""Mistakes in lesson 08: the shift, the learning rate, the loss with smoothed labels."""

import torch.nn.functional as F

from transformer_lesson.exercises.specification import Mistake


def shifted(target, read=slice(None, -1), predict=slice(1, None)):
    """Inputs and labels, with places for a bug."""
    return target[:, read], target[:, predict]


def rate(step, d_model, warmup_steps, choose=min, width=-0.5, rise=-1.5):
    """The paper's learning rate, with places for a bug."""
    return d_model**width * choose(step**-0.5, step * warmup_steps**rise)


def _whole_division(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step // warmup_steps * warmup_steps**-0.5)


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


TRAINING_MISTAKES = {
    "shift_right": (
        Mistake(
            "inputs and labels in each other's place",
            "The decoder would read the answer and learn to predict the word before it. The "
            "inputs begin with `<bos>`: return them first.",
            lambda target: shifted(target)[::-1],
        ),
        Mistake(
            "a shift that does not happen",
            "The label at each position is the token read there, so the model learns to copy: its "
            "loss falls to 0, and it cannot write a word. Cut one end off each.",
            lambda target: (target, target),
        ),
        Mistake(
            "inputs without <bos>",
            "Inputs and labels are the same tokens, so copying is all there is to learn, and the "
            "first word is never predicted from nothing. The inputs lose the other end.",
            lambda target: shifted(target, read=slice(1, None)),
        ),
        Mistake(
            "labels that keep <bos>",
            "The model is to predict at each position what it reads there, and `<eos>` never "
            "occurs as a label, so it never learns to stop. The labels lose the first token.",
            lambda target: shifted(target, predict=slice(None, -1)),
        ),
        Mistake(
            "labels rolled round",
            "`roll` brings `<bos>` back as the last label: the model learns that a new sentence "
            "begins after `<eos>`, and both tensors have one column too many. Cut instead.",
            lambda target: (target, target.roll(-1, dims=1)),
        ),
        Mistake(
            "labels without <eos>",
            "The labels are one shorter than the inputs, and a model that never has to predict "
            "`<eos>` writes on for ever. Which end must the labels keep?",
            lambda target: shifted(target, predict=slice(1, -1)),
        ),
        Mistake(
            "labels two steps ahead",
            "The model would learn to skip every second word when it writes. The label is the "
            "very next token: cut one token off, not two.",
            lambda target: (target[:, :-2], target[:, 2:]),
        ),
        Mistake(
            "a shift along the batch",
            "The first axis counts sentences, so each sentence is to predict another one. Tokens "
            "are on axis 1: which place in the index belongs to it?",
            lambda target: (target[:-1], target[1:]),
        ),
        Mistake(
            "the labels alone",
            "The decoder has to read something too. Return two tensors, the inputs first.",
            lambda target: shifted(target)[1],
        ),
    ),
    "warmup_rate": (
        Mistake(
            "the larger of the two curves",
            "The rate starts high, where it should be near 0, and grows without end: training "
            "diverges in the first steps. Which of the two curves is below the other before the "
            "warm-up ends?",
            lambda *inputs: rate(*inputs, choose=max),
        ),
        Mistake(
            "a rate without d_model",
            "At d_model 512 your rate is 23 times too high, and the loss jumps about. Wide models "
            "need small steps: which power of d_model stands in front?",
            lambda *inputs: rate(*inputs, width=0),
        ),
        Mistake(
            "multiplying by the root of d_model",
            "The wider the model, the larger your steps, and it should be the other way round. "
            "Look at the sign of the exponent of d_model.",
            lambda *inputs: rate(*inputs, width=0.5),
        ),
        Mistake(
            "a schedule without warm-up",
            "Step 1 has the highest rate of all, when Adam has seen one gradient and its averages "
            "mean little. The second curve is missing, the one that rises with the step.",
            lambda step, d_model, warmup_steps: (step * d_model) ** -0.5,
        ),
        Mistake(
            "a warm-up that ends in another height",
            "Your two curves do not meet at step warmup_steps, so the warm-up is over after a few "
            "steps. Solve step^-0.5 = step * warmup_steps^x there: which x is it?",
            lambda *inputs: rate(*inputs, rise=-0.5),
        ),
        Mistake(
            "a warm-up by whole-number division",
            "`step // warmup_steps` is 0 until the warm-up ends, so the model does not learn at "
            "all in that time. Rising step by step needs `/`, or a power.",
            _whole_division,
        ),
        Mistake(
            "a step counted from 0",
            "Your rate lags one step behind. Steps count from 1 here, so step 0, which would "
            "divide by zero, never comes: use `step` as it is.",
            lambda step, *sizes: rate(max(step - 1, 1e-9), *sizes),
        ),
        Mistake(
            "a step counted once too often",
            "Your rate is one step ahead. PyTorch's schedulers count from 0 and people add 1, but "
            "here the first step is 1 already.",
            lambda step, *sizes: rate(step + 1, *sizes),
        ),
        Mistake(
            "a rate that never falls",
            "After the warm-up it stays at its peak, and the loss keeps jumping around its "
            "minimum. The other curve, which falls with the root of the step, takes over there.",
            lambda step, d, warmup: d**-0.5 * min(step, warmup) * warmup**-1.5,
        ),
    ),
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
