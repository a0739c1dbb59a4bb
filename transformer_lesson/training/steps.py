"""One step of training, and its mirror without learning: validation."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from transformer_lesson.config import TrainConfig
from transformer_lesson.corpora.batches import Batch
from transformer_lesson.training.history import History, TrainingDiverged
from transformer_lesson.training.losses import batch_loss
from transformer_lesson.training.optimizers import clip_gradients
from transformer_lesson.training.processes import Processes
from transformer_lesson.training.replicas import Learner
from transformer_lesson.training.schedules import learning_rate
from transformer_lesson.training.shares import count_labels, label_padding, split_batch


def training_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    history: History,
    learner: Learner | None = None,
) -> None:
    """Learn from one batch: forward, loss, backward, clip, update. `history` gets a line more.

    Only forward and backward pass are in training mode (dropout); before and after them the model
    is in evaluation mode.

    Args:
        learner: how several processes share the work; without it this one does it all.

    Raises:
        TrainingDiverged: the loss or the gradient is no finite number. Nothing was updated.
    """
    learner = learner or Learner(model, config, Processes())
    rate = learning_rate(history.steps + 1, config, model.config.d_model)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss = _accumulate(learner, batch, config.micro_batches)
    _require_finite("loss", loss, rate, history)
    norm = clip_gradients(learner.trained, config.clip).item()
    _require_finite("gradient's length", norm, rate, history)
    optimizer.step()
    history.losses.append(loss)
    history.rates.append(rate)
    history.gradient_norms.append(norm)
    history.tokens += count_labels(batch.labels, label_padding(model, batch.labels))


def _accumulate(learner: Learner, batch: Batch, micro_batches: int) -> float:
    """Leave the gradient of the whole batch in the weights and return its loss.

    Each process works on its own rows, in `micro_batches` parts one after the other. What is
    averaged over the processes is made that many times larger first, so that a sum is left.
    """
    rank, count = learner.processes
    pad_id = label_padding(learner.model, batch.labels)
    shares = split_batch(batch, count * micro_batches, pad_id)[rank::count]
    total = 0.0
    learner.trained.train()
    try:
        for number, (part, weight) in enumerate(shares, start=1):
            with learner.joining(number == len(shares)):
                loss = learner.objective(part) * weight
                (loss * count).backward()
            total += loss.item()
    finally:
        learner.trained.eval()
    return learner.processes.add_up(total)[0]


def validation_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> float:
    """Return the mean loss in nats per label over all batches, without dropout and smoothing.

    The model goes back to the mode that it was in.
    """
    total, count = total_loss(model, batches, precision)
    return total / count


@torch.no_grad()
def total_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> tuple[float, int]:
    """Return the sum of the losses of all labels, in nats, and how many labels there are."""
    mode, total, count = model.training, 0.0, 0
    model.eval()
    for batch in batches:
        loss, n_labels = batch_loss(model, batch, precision)
        total, count = total + loss.item() * n_labels, count + n_labels
    model.train(mode)
    return total, count


def _require_finite(name: str, value: float, rate: float, history: History) -> None:
    if not math.isfinite(value):
        raise TrainingDiverged(
            f"the {name} at step {history.steps + 1} is {value}: try a learning rate below "
            f"{rate:.2g}, a longer warm-up or a smaller clip. The model and its history are as of "
            f"step {history.steps}.",
            history,
        )
