"""How far logits are apart, and how far they may be."""

from torch import Tensor

CLOSE = 3e-6
"""How far logits may differ, as a share of the largest."""


def apart(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference as a share of the largest number."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()
