"""Removing a part of a model, or replacing it by another run's, to see what changes.

Watching shows what a head looks at; only an intervention shows whether the model needs it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.hooks import Recording, record
from transformer_lesson.text.batches import Batch


class Head(NamedTuple):
    """One attention head: Head("decoder.1.self_attention", 0)."""

    attention: str
    number: int


class Site(NamedTuple):
    """A place in a model: a hook point's name, and which head if its axis 1 is heads."""

    label: str
    point: str
    head: int | None = None


def ablate_head(
    head_outputs: Float[Tensor, "batch head n d_head"], head: int
) -> Float[Tensor, "batch head n d_head"]:
    """Return the heads' outputs with one head's set to zero; the argument stays as it is.

    Args:
        head_outputs: what each head has read, before W_O, shape (batch, head, n, d_head).
        head: which head, from 0.

    Raises:
        ValueError: there is no such head.

    Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3.
    """
    n_heads = head_outputs.size(1)
    if not 0 <= head < n_heads:
        raise ValueError(f"head is {head}, but there are heads 0 to {n_heads - 1}.")
    ablated = head_outputs.clone()
    ablated[:, head] = 0.0
    return ablated


def heads_of(model: nn.Module, attention: str = "") -> list[Head]:
    """Return a model's heads in order, of every attention layer with `attention` in its name.

    Raises:
        ValueError: the model has no such attention.
    """
    parts = [(n, m) for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)]
    heads = [Head(name, i) for name, m in parts if attention in name for i in range(m.n_heads)]
    if not heads:
        names = ", ".join(name for name, _ in parts)
        raise ValueError(f"no attention has {attention!r} in its name; there are {names}.")
    return heads


@contextmanager
def without_heads(model: nn.Module, heads: Iterable[Head]) -> Iterator[Recording]:
    """Let a model run without some of its heads; inside the block their outputs are zero.

    Raises:
        ValueError: what is no `Head`, or an unknown attention or head.
    """
    by_point: dict[str, list[int]] = {}
    for head in heads:
        if not isinstance(head, tuple) or len(head) != 2:
            raise ValueError(
                f"A head is {head!r}, but it must be a Head: write "
                "Head('encoder.0.self_attention', 3), for example."
            )
        attention, number = head
        by_point.setdefault(f"{attention}.heads", []).append(number)

    def ablation(numbers: list[int]) -> Callable[[Tensor], Tensor]:
        """Return a function that sets these heads of an attention to zero."""

        def ablate(outputs: Tensor) -> Tensor:
            for number in numbers:
                outputs = ablate_head(outputs, number)
            return outputs

        return ablate

    with record(model, {point: ablation(numbers) for point, numbers in by_point.items()}) as run:
        yield run


@torch.no_grad()
def token_losses(
    model: nn.Module, batch: Batch, without: Iterable[Head] = ()
) -> Float[Tensor, "batch n"]:
    """Return the loss in nats at each position; 0 where the label is padding.

    Args:
        model: predicts next tokens, in evaluation mode.
        batch: what it reads, and the labels.
        without: heads to remove.
    """
    with without_heads(model, without):
        logits = model(*batch.inputs)  # (batch, n, vocab_size)
    pad_id = model.config.pad_id
    ignored = -100 if pad_id is None else pad_id
    return F.cross_entropy(logits.mT, batch.labels, ignore_index=ignored, reduction="none")


def stream_sites(model: nn.Module, stack: str = "decoder") -> list[Site]:
    """Return the residual stream of a stack: after the embedding, then after each block."""
    embedding = {"encoder": "source_embedding", "decoder": "target_embedding"}[stack]
    embedding = embedding if hasattr(model, embedding) else "embedding"
    layers = range(len(getattr(model, stack)))
    after = [Site(f"after block {i}", f"{stack}.{i}.output") for i in layers]
    return [Site("embedding", f"{embedding}.output"), *after]


def head_sites(model: nn.Module, attention: str) -> list[Site]:
    """Return the outputs of the heads of every attention layer with `attention` in its name."""
    return [
        Site(f"block {name.split('.')[1]}, head {number}", f"{name}.heads", number)
        for name, number in heads_of(model, attention)
    ]


@torch.no_grad()
def patching_grid(
    model: nn.Module,
    clean: tuple[Tensor, ...],
    corrupted: tuple[Tensor, ...],
    sites: Sequence[Site],
    measure: Callable[[Tensor], Tensor],
) -> Float[Tensor, "site position"]:
    """Return how much of the clean answer comes back when one vector is that of the clean run.

    The model reads the corrupted input. At one site and one position its vector is replaced by
    the one that the clean input gave there, and everything after it is recomputed. All positions
    of a site are the rows of one batch.

    Args:
        model: in evaluation mode.
        clean, corrupted: inputs of one sentence each, as `model(*inputs)` reads them; of equal
            length.
        sites: where to patch.
        measure: from logits (batch, n, vocab_size) to one number per row, larger for the clean
            answer.

    Returns:
        0 where nothing changes, 1 where the measure is that of the clean run. Values below 0 or
        above 1 are possible.

    Raises:
        ValueError: inputs of different shapes, or the same measure for both.

    Source: Meng et al., "Locating and Editing Factual Associations in GPT" (2022), section 2.
    """
    shapes = [[tuple(part.shape) for part in side] for side in (clean, corrupted)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"clean is {shapes[0]} and corrupted {shapes[1]}: they must be alike.")
    with record(model) as run:
        high = measure(model(*clean))  # (1,)
    low = measure(model(*corrupted))  # (1,)
    if torch.isclose(high, low, atol=1e-4).any():
        raise ValueError(
            f"the measure is {float(high[0]):.4g} for both inputs: corrupt a token that matters."
        )
    rows = []
    for site in sites:
        stored = run[site.point]
        n = stored.size(-2)
        batch = [part.expand(n, -1) for part in corrupted]
        with record(model, {site.point: _patch(stored, site.head)}):
            rows.append((measure(model(*batch)) - low) / (high - low))  # (position,)
    return torch.stack(rows)


def put_back(
    stored: Tensor, position: Int64[Tensor, " batch"], heads: Sequence[int] | None = None
) -> Callable[[Tensor], Tensor]:
    """Return a function for `record`'s `replace`: in each row, one position's stored vector.

    Args:
        stored: what another run had there, shape (batch, n, d_model) or (batch, head, n, d_head).
        position: of each row.
        heads: those whose vectors are put back; `None` if axis 1 is not heads.
    """

    def replace(x: Tensor) -> Tensor:
        """Return a copy of x with the stored vectors, of the same shape."""
        rows, x = torch.arange(len(x)), x.clone()
        if heads is None:
            x[rows, position] = stored[rows, position]
        for head in heads or ():
            x[rows, head, position] = stored[rows, head, position]
        return x

    return replace


def _patch(stored: Tensor, head: int | None) -> Callable[[Tensor], Tensor]:
    """Return a function that gives row i of a batch the stored vector at position i."""

    def patch(x: Tensor) -> Tensor:
        """Return a copy of x with the stored vectors, of the same shape."""
        i, x = torch.arange(len(x)), x.clone()
        if head is None:
            x[i, i] = stored[0]  # (position, d_model)
        else:
            x[i, head, i] = stored[0, head]  # (position, d_head)
        return x

    return patch
