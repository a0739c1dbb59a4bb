"""One step of training, and its mirror without learning: validation."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_lesson.config import TrainConfig
from transformer_lesson.corpora.batches import Batch
from transformer_lesson.models import EncoderOnlyTransformer
from transformer_lesson.training.history import History, TrainingDiverged
from transformer_lesson.training.losses import label_smoothed_loss
from transformer_lesson.training.optimizers import clip_gradients
from transformer_lesson.training.schedules import learning_rate


def training_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    history: History,
) -> None:
    """Learn from one batch: forward, loss, backward, clip, update. `history` gets a line more.

    Only the forward pass is in training mode (dropout); before and after it the model is in
    evaluation mode.

    Raises:
        TrainingDiverged: the loss or the gradient is no finite number. Nothing was updated.
    """
    rate = learning_rate(history.steps + 1, config, model.config.d_model)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    model.train()
    loss, n_labels = batch_loss(model, batch, config.precision, config.label_smoothing)
    model.eval()
    _require_finite("loss", loss, rate, history)
    loss.backward()
    norm = clip_gradients(model, config.clip)
    _require_finite("gradient's length", norm, rate, history)
    optimizer.step()
    history.losses.append(loss.item())
    history.rates.append(rate)
    history.gradient_norms.append(norm.item())
    history.tokens += n_labels


def batch_loss(
    model: nn.Module, batch: Batch, precision: str = "float32", smoothing: float = 0.0
) -> tuple[Tensor, int]:
    """Return the mean loss of a batch in nats per label, and how many labels count.

    Labels of shape (batch, n) are tokens, those that are the model's pad_id do not count. Labels
    of shape (batch,) are classes for an encoder-only model, and all count.
    """
    device = next(model.parameters()).device
    inputs, labels = [ids.to(device) for ids in batch.inputs], batch.labels.to(device)
    predict = model
    if isinstance(model, EncoderOnlyTransformer):
        predict = model.classify if labels.dim() == 1 else model.predict_tokens
    pad_id = None if labels.dim() == 1 else model.config.pad_id
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        logits = predict(*inputs)  # (batch, n, vocab_size), or (batch, n_classes)
        loss = label_smoothed_loss(logits, labels, smoothing, pad_id)
    n_labels = labels.numel() if pad_id is None else int((labels != pad_id).sum())
    return loss, n_labels


@torch.no_grad()
def validation_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> float:
    """Return the mean loss in nats per label over all batches, without dropout and smoothing.

    The model goes back to the mode that it was in.
    """
    mode, total, count = model.training, 0.0, 0
    model.eval()
    for batch in batches:
        loss, n_labels = batch_loss(model, batch, precision)
        total, count = total + loss.item() * n_labels, count + n_labels
    model.train(mode)
    return total / count


def _require_finite(name: str, value: Tensor, rate: float, history: History) -> None:
    if not math.isfinite(value.item()):
        raise TrainingDiverged(
            f"the {name} at step {history.steps + 1} is {value.item()}: try a learning rate below "
            f"{rate:.2g}, a longer warm-up or a smaller clip. The model and its history are as of "
            f"step {history.steps}.",
            history,
        )
