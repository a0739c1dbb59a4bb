"""Less memory, the same gradient: batches in parts, and blocks that compute twice."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain

from torch import nn
from torch.utils.checkpoint import checkpoint

from transformer_lesson.text.batches import Batch
from transformer_lesson.training.loss import count_labels

Parts = list[tuple[Batch, float]]  # of a batch, each with its share of the labels


def split_batch(batch: Batch, parts: int, pad_id: int | None = None) -> Parts:
    """Return every part of a batch with its weight: its share of the labels that count.

    Part i holds the rows i, i + parts, i + 2 * parts, ... and keeps the padding of the whole, so
    that each part has about as much to compute. The mean loss of the batch is the sum of the
    parts' mean losses times their weights, and so is its gradient. A plain mean of the means
    would count a label in a short part for more than one in a long part.

    A part with nothing to predict is replaced by the whole batch with weight 0: every process gets
    the same number of parts, whatever the batch.

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


@contextmanager
def checkpointing_activations(model: nn.Module, wanted: bool = True) -> Iterator[None]:
    """Let each block forget what it computed, and recompute it when gradients need it.

    Only the vectors between blocks are kept: memory is saved for the price of a second forward
    pass.
    Dropout draws the same numbers again.

    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
    """
    with ExitStack() as undo:
        blocks = chain(getattr(model, "encoder", ()), getattr(model, "decoder", ()))
        for block in blocks if wanted else ():
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
            undo.callback(delattr, block, "forward")  # back to the class's own
        yield
