"""Sequences of different lengths as one rectangle of ids."""

import operator
from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor


def pad_batch(
    sequences: Sequence[Sequence[int]], pad_id: int, side: str = "right"
) -> Int64[Tensor, "batch n"]:
    """One row per sequence, filled up with `pad_id` to the length n of the longest.

    Args:
        sequences: lists of token ids; some of them, not all, may be empty.
        pad_id: the id of the padding token.
        side: where the padding goes: "right" for training, "left" for generating, so that
            every row ends in its last real token.

    Raises:
        ValueError: no sequences, only empty ones, a negative `pad_id`, or an unknown side.
        TypeError: an id is no whole number.
    """
    if side not in ("right", "left"):
        raise ValueError(f'side must be "right" or "left", got {side!r}.')
    if pad_id < 0:
        raise ValueError(f"pad_id must be a token id, 0 or more, got {pad_id}.")
    n = max((len(sequence) for sequence in sequences), default=0)
    if n == 0:
        raise ValueError(
            f"A batch needs at least one token, got {len(sequences)} sequences without any: "
            "pass at least one sequence that is not empty."
        )
    batch = torch.full((len(sequences), n), pad_id)  # (batch, n)
    for row, sequence in zip(batch, sequences, strict=True):
        ids = torch.tensor([operator.index(id_) for id_ in sequence], dtype=torch.int64)
        start = 0 if side == "right" else n - len(sequence)
        row[start : start + len(sequence)] = ids
    return batch


def count_padding(batch: Int64[Tensor, "batch n"], pad_id: int) -> float:
    """The share of a batch that is padding, from 0 to 1."""
    return (batch == pad_id).double().mean().item()
