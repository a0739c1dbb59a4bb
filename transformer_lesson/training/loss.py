"""How wrong a prediction is, in one number."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.transformers import EncoderOnlyTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.training.config import PRECISIONS


def label_smoothed_loss(
    logits: Float[Tensor, "*batch vocab_size"],
    labels: Int[Tensor, "*batch"],
    smoothing: float = 0.0,
    pad_id: int | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed targets: the mean over the labels that are not padding.

    loss = (1 - smoothing) * -log p(label) + smoothing * mean over the vocabulary of -log p.

    It is computed in float32, whatever the precision of the logits, and equals
    `F.cross_entropy` with `label_smoothing` and `ignore_index`. A logit of -inf, an impossible
    token, costs nothing without smoothing, unless it is the label; with smoothing, which asks for a
    little of every token, the loss is inf.

    Args:
        logits: scores before softmax, shape (..., vocab_size). Not probabilities: the softmax is
            computed here.
        labels: the right ids, shape (...).
        smoothing: share of the target probability that is spread evenly over all tokens.
        pad_id: the label that does not count, or `None` if all count.

    Returns:
        The loss in nats per label, a tensor without axes.

    Raises:
        ValueError: shapes that do not fit, labels outside the vocabulary, smoothing outside [0, 1),
            or nothing but padding.

    Source: Szegedy et al., "Rethinking the Inception Architecture" (2015), section 7; "Attention
        Is All You Need" (2017), section 5.4.
    Differs: some texts give the label 1 - smoothing and share the rest among the others only.
        Here, as in PyTorch, the label gets its part of the rest too: for logits 2, 0, 0, 0 and
        label 0 the loss is 0.4908 instead of 0.5408.
    """
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)}, labels {tuple(labels.shape)}: the logits "
            "must have the labels' shape and one axis more, the vocabulary."
        )
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}, but it must be a number in [0, 1).")
    if pad_id is not None:
        logits, labels = logits[labels != pad_id], labels[labels != pad_id]  # (real, vocab_size)
    _check_labels(labels, logits.size(-1))
    log_p = logits.float().log_softmax(dim=-1)  # (..., vocab_size)
    wrong = -log_p.gather(-1, labels.long()[..., None]).squeeze(-1)  # (...)
    if smoothing == 0:  # 0 times the inf of a token that cannot be would be no number
        return wrong.mean()
    spread = -log_p.mean(dim=-1)  # (...)
    return ((1 - smoothing) * wrong + smoothing * spread).mean()


def loss_gradient(
    logits: Float[Tensor, "*batch vocab_size"],
    labels: Int[Tensor, "*batch"],
    smoothing: float = 0.0,
    pad_id: int | None = None,
) -> Float[Tensor, "*batch vocab_size"]:
    """The derivative of `label_smoothed_loss` by each logit, on paper rather than by autograd.

    loss = ln sum exp(z) - sum q z at each label that counts, so its derivative is p - q there,
    divided by how many labels count. Where the label is padding it is 0.

    Args:
        logits: scores before softmax, shape (..., vocab_size).
        labels: the right ids, shape (...).
        smoothing: share of the target probability that is spread evenly over all tokens.
        pad_id: the label that does not count, or `None` if all count.
    """
    real = torch.ones_like(labels, dtype=torch.bool) if pad_id is None else labels != pad_id
    vocab_size = logits.size(-1)
    q = (1 - smoothing) * nn.functional.one_hot(labels.long(), vocab_size) + smoothing / vocab_size
    return (logits.softmax(dim=-1) - q) * real[..., None] / real.sum()


def _check_labels(labels: Tensor, vocab_size: int) -> None:
    if labels.is_floating_point():
        raise ValueError(f"labels have dtype {labels.dtype}, but they must be ids: whole numbers.")
    if labels.numel() == 0:
        raise ValueError("all labels are padding: there is nothing to learn from such a batch.")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"label {low if low < 0 else high} is outside the vocabulary of {vocab_size} tokens "
            f"(0 to {vocab_size - 1})."
        )


def batch_loss(
    model: nn.Module, batch: Batch, precision: str = "float32", smoothing: float = 0.0
) -> tuple[Tensor, int]:
    """Return the mean loss of a batch in nats per label, and how many labels count.

    Labels of shape (batch, n) are tokens, of which the model's pad_id does not count. Labels of
    shape (batch,) are classes for an encoder-only model, and all count.

    Raises:
        ValueError: the precision is neither "float32" nor "bfloat16".
    """
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision is {precision!r}, but here it must be {' or '.join(PRECISIONS)}: "
            "only train can choose."
        )
    device = next(model.parameters()).device
    inputs, labels = [ids.to(device) for ids in batch.inputs], batch.labels.to(device)
    predict = model
    if isinstance(model, EncoderOnlyTransformer):
        predict = model.classify if labels.dim() == 1 else model.predict_tokens
    pad_id = label_padding(model, labels)
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        logits = predict(*inputs)  # (batch, n, vocab_size), or (batch, n_classes)
        loss = label_smoothed_loss(logits, labels, smoothing, pad_id)
    return loss, count_labels(batch.labels, pad_id)


def validation_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> float:
    """Return the mean loss in nats per label over all batches, without dropout and smoothing.

    Every part of the model returns to the mode that it was in.

    Raises:
        ValueError: no batches; and as `batch_loss`.
    """
    total, count = total_loss(model, batches, precision)
    if count == 0:
        raise ValueError("there are no batches to measure the loss on: pass at least one.")
    return total / count


@torch.no_grad()
def total_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> tuple[float, int]:
    """Return the sum of the losses of all labels, in nats, and how many labels there are."""
    total, count = 0.0, 0
    with evaluating(model):
        for batch in batches:
            loss, n_labels = batch_loss(model, batch, precision)
            total, count = total + loss.item() * n_labels, count + n_labels
    return total, count


def bits_per_character(loss_in_nats: float, n_tokens: int, n_characters: int) -> float:
    """Turn a loss per token into bits per character, which do not depend on the tokens' size.

    bits = loss / ln 2 * n_tokens / n_characters: a nat is 1 / ln 2 = 1.44 bits, and the loss of
    all tokens is divided among the characters that they spell.

    Args:
        loss_in_nats: mean loss per predicted token.
        n_tokens: how many tokens were predicted.
        n_characters: how many characters these tokens spell.

    Raises:
        ValueError: a number of tokens or characters under 1.
    """
    if n_tokens < 1 or n_characters < 1:
        raise ValueError(
            f"n_tokens is {n_tokens} and n_characters {n_characters}: both must be >= 1."
        )
    return loss_in_nats / math.log(2) * n_tokens / n_characters


def count_labels(labels: Tensor, pad_id: int | None) -> int:
    """Return how many labels count: all of them, or those that are not padding."""
    return labels.numel() if pad_id is None else int((labels != pad_id).sum())


def label_padding(model: nn.Module, labels: Tensor) -> int | None:
    """Return the label that does not count. Labels of shape (batch,) are classes: all count."""
    return None if labels.dim() == 1 else model.config.pad_id
