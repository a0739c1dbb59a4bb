"""Other right ways of writing lesson 08's exercises."""

import torch
import torch.nn.functional as F

from transformer_lesson.exercises.mistakes.training import rate, shifted, smoothed


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
