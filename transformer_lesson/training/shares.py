"""A batch in parts: for several processes, or for less memory, one part after the other."""

from torch import Tensor, nn

from transformer_lesson.corpora.batches import Batch
from transformer_lesson.models import EncoderOnlyTransformer


def count_labels(labels: Tensor, pad_id: int | None) -> int:
    """Return how many labels count: all of them, or those that are no padding."""
    return labels.numel() if pad_id is None else int((labels != pad_id).sum())


def label_padding(model: nn.Module, labels: Tensor) -> int | None:
    """Return the label that does not count. Labels of shape (batch,) are classes: all count."""
    return None if labels.dim() == 1 else model.config.pad_id


def split_batch(batch: Batch, parts: int, pad_id: int | None = None) -> list[tuple[Batch, float]]:
    """Return every part of a batch with its weight, its share of the labels that count.

    Part i holds the rows i, i + parts, i + 2 * parts, ... and keeps the padding of the whole, so
    that each part has about as much to compute. The mean loss of the batch is the sum of the
    parts' mean losses times their weights, and so is its gradient. A plain mean of the means
    would count a label in a short part for more than one in a long part.

    A part without anything to predict is the whole batch with weight 0: every process has the
    same number of parts to work on, whatever the batch.

    Raises:
        ValueError: parts is under 1.
    """
    if parts < 1:
        raise ValueError(f"parts is {parts}, but it must be at least 1.")
    total = count_labels(batch.labels, pad_id)
    shares = []
    for first in range(parts):
        part = Batch(tuple(ids[first::parts] for ids in batch.inputs), batch.labels[first::parts])
        n_labels = count_labels(part.labels, pad_id)
        shares.append((part, n_labels / total) if n_labels else (batch, 0.0))
    return shares


def has_two_heads(model: nn.Module) -> bool:
    """Tell whether a model has a classifier and a token head: a batch trains only one of them."""
    if not isinstance(model, EncoderOnlyTransformer):
        return False
    return model.classifier is not None and model.projection is not None
