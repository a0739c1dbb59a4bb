"""Lesson 08: what is predicted, how wrong it is, and how large the step is."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


def _target_inputs(draw: Draw) -> tuple:
    n = draw.size("n", at_least=3)
    target = draw.integers("batch n", 3, 50)
    target[:, 0], target[:, -1] = 1, 2  # <bos> ... <eos>
    if draw.number % 2:
        target[0, n // 2 + 1 :] = 0  # a shorter sentence: <eos>, then padding
        target[0, n // 2] = 2
    return (target,)


def _rate_inputs(draw: Draw) -> tuple:
    warmup_steps = int(draw.integers("", 5, 400))
    step = (1, warmup_steps - 1, warmup_steps, warmup_steps + 1, 7 * warmup_steps)[draw.number % 5]
    return step, 2 ** int(draw.integers("", 4, 10)), warmup_steps


def _loss_inputs(draw: Draw) -> tuple:
    draw.size("vocab_size", at_least=2)
    logits = draw.normal("batch n vocab_size")
    labels = draw.integers("batch n", 1, max(2, draw.size("vocab_size")))
    pad_id = 0
    if draw.number % 2:
        pad_id = int(labels[0, 0])  # not always 0
    labels[0, -1] = pad_id
    labels[-1, 0] = 1 if pad_id != 1 else 0  # at least one label counts
    return logits, labels, (0.0, 0.1, 0.3)[draw.number % 3], pad_id


def _label_is_the_next_input(answer, inputs: tuple, read: Tensor, labels: Tensor) -> str | None:
    if torch.equal(read[:, 1:], labels[:, :-1]):
        return None
    return (
        "At each position the label must be the token that the decoder reads next: labels[:, t] "
        "is inputs[:, t + 1].\nWhich end of the target does each of the two leave out?"
    )


def _padding_counts_for_nothing(answer, inputs: tuple, loss: float | Tensor) -> str | None:
    logits, labels, smoothing, pad_id = inputs
    padded = labels == pad_id
    changed = torch.where(padded[..., None], 1 - 3 * logits, logits)
    other = answer(changed, labels.clone(), smoothing, pad_id)
    if torch.allclose(torch.as_tensor(other), torch.as_tensor(loss), atol=1e-5):
        return None
    return (
        f"The loss changes, from {float(loss):.4f} to {float(other):.4f}, when the logits at "
        f"padding change.\nWhere the label is pad_id = {pad_id}, nothing may count: neither the "
        "cross-entropy nor the smoothing."
    )


TRAINING_EXERCISES = (
    Exercise(
        name="shift_right",
        reference="transformer_lesson.text.batches:shift_right",
        make_inputs=_target_inputs,
        returns={"inputs": "batch n-1", "labels": "batch n-1"},
        hints=(
            "The decoder reads the target from `<bos>` on and predicts it up to `<eos>`.",
            "The inputs leave out the last token of each row, the labels the first.",
            "`target[:, :-1]` and `target[:, 1:]`, in this order.",
        ),
        invariants=(_label_is_the_next_input,),
    ),
    Exercise(
        name="warmup_rate",
        reference="transformer_lesson.training.schedule:warmup_rate",
        make_inputs=_rate_inputs,
        returns={"rate": ""},
        hints=(
            "Two curves: one rises in proportion to the step, one falls with its root. The rate "
            "is the smaller of the two.",
            "They meet at step = warmup_steps. Both are multiplied by d_model^-0.5.",
            "`d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)`",
        ),
    ),
    Exercise(
        name="label_smoothed_loss",
        reference="transformer_lesson.training.loss:label_smoothed_loss",
        make_inputs=_loss_inputs,
        returns={"loss": ""},
        hints=(
            "Start with `log_p = logits.log_softmax(dim=-1)`. The logits are no probabilities.",
            "Two terms: `-log_p` at the label, and the mean of `-log_p` over the vocabulary.",
            "(1 - smoothing) times the first plus smoothing times the second, at each position.",
            "Keep only the positions whose label is not `pad_id`, then take the mean.",
        ),
        invariants=(_padding_counts_for_nothing,),
    ),
)
