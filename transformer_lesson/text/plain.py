"""Windows of a text in their plainest form: where they start is given, and nothing is checked.

`WindowBatches` chooses the starts itself, without end.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor


def windows(
    ids: Int[Tensor, " text"], length: int, starts: Sequence[int]
) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
    """Return windows of a text, and the token that follows each of their tokens.

    Args:
        ids: the whole text.
        length: tokens in a window, n.
        starts: where each window starts; the text goes on for a token after each window.

    Returns:
        The inputs, and the labels: the same windows one token later.
    """
    inputs = torch.stack([ids[start : start + length] for start in starts])
    labels = torch.stack([ids[start + 1 : start + 1 + length] for start in starts])
    return inputs, labels
