"""One step of training in its plainest form: one process, one precision, nothing watched.

`loop.training_step` does the same with a schedule, a history and what stops a run that diverges.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer_lesson.text.batches import Batch


def training_step(
    model: nn.Module,
    batch: Batch,
    loss_function: Callable[[Tensor, Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> float:
    """Learn from one batch: zero, forward, loss, backward, clip, step.

    Args:
        model: its weights are changed.
        batch: `model(*batch.inputs)` gives the logits for `batch.labels`.
        loss_function: takes logits and labels; returns a tensor without axes.
        optimizer: of the model's weights.
        max_norm: a longer gradient, of all weights taken as one vector, is shortened to this.

    Returns:
        The loss before the update, a number.

    Source: "Attention Is All You Need" (2017), section 5. The paper does not clip.
    """
    optimizer.zero_grad()
    logits = model(*batch.inputs)
    loss = loss_function(logits, batch.labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
