"""One small random model of the library for each family, by name."""

import torch
from torch import nn

from tests.checkpoints import families, older, relatives, t5

TWO_TEXTS = ("marian", *t5.KINDS)
WRITERS = ("gpt2", "llama", *relatives.FAMILIES, "OPT")
NAMES = (*families.FAMILIES, *relatives.FAMILIES, *older.OLDER, *t5.KINDS)


def made(name: str) -> nn.Module:
    """Return the library's model."""
    if name in families.FAMILIES:
        return families.library_model(name, **families.drawn_fields(name, seed=1))
    if name in older.OLDER:
        return older.older(name)
    return t5.made(name) if name in t5.KINDS else relatives.made(name)


def inputs(name: str) -> tuple[torch.Tensor, ...]:
    """Return what our model of a family takes."""
    ids = torch.randint(4, 35, (2, 9))
    return (ids, ids[:, :5]) if name in TWO_TEXTS else (ids,)
