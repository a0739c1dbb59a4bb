"""One step of training in its plainest form: one process, one precision, nothing watched.

`loop.training_step` does the same with a schedule, a history and a check for divergence, and
`loop.accumulate` with the package's batches.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Int
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


def accumulate(
    model: nn.Module,
    parts: Sequence[tuple[Int[Tensor, "_ _"], Int[Tensor, "_ _"]]],
    pad_id: int,
) -> float:
    """Add the gradient of a batch's mean loss to the weights, part by part; return that loss.

    The mean is over all labels of the batch that are not padding, whatever part they are in.
    After each part its activations are freed, so that only one part at a time needs memory.

    Args:
        model: gives logits, shape (part, n, vocab_size), for ids of shape (part, n).
        parts: ids and labels of each part of the batch; a part may have no label that counts.
        pad_id: a label that does not count.

    Raises:
        ValueError: there is nothing but padding to predict.
    """
    count = sum(int((labels != pad_id).sum()) for _, labels in parts)
    if not count:
        raise ValueError(f"All labels are padding ({pad_id}): give at least one that counts.")
    loss = 0.0
    for ids, labels in parts:
        logits = model(ids).flatten(0, 1)  # (part * n, vocab_size)
        summed = F.cross_entropy(logits, labels.flatten(), ignore_index=pad_id, reduction="sum")
        share = summed / count
        share.backward()
        loss += share.item()
    return loss
