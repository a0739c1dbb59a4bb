"""Does a model see the future? Change one token and look which outputs move."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Model = Callable[[Tensor], Tensor]


@torch.no_grad()
def changed_positions(
    model: Model, ids: Int[Tensor, "batch n"], position: int, new_id: int | None = None
) -> Float[Tensor, " n"]:
    """Return how far each position's output moves when the token at one position changes.

    Args:
        model: a function from ids (batch, n) to outputs (batch, n, anything), in evaluation
            mode (dropout would move everything).
        ids: token ids; ids 0 and 1 must be in the vocabulary.
        position: which token to change.
        new_id: what to put there; by default 0, or 1 where a 0 stands.

    Returns:
        The largest absolute change at each position, shape (n,).

    Raises:
        ValueError: position is outside the sequence.
    """
    n = ids.size(1)
    if not 0 <= position < n:
        raise ValueError(f"position is {position}, but the sequence has positions 0 to {n - 1}.")
    changed = ids.clone()
    old = ids[:, position]
    changed[:, position] = (old == 0).long() if new_id is None else new_id
    difference = (model(changed) - model(ids)).abs()  # (batch, n, ...)
    return difference.flatten(2).amax(dim=(0, 2))  # (n,)


def leaks_future(model: Model, ids: Int[Tensor, "batch n"]) -> bool:
    """Return whether changing a token moves the output of any earlier position.

    Args:
        model: a function from ids (batch, n) to outputs (batch, n, anything), in evaluation
            mode.
        ids: token ids, one or more per sentence.
    """
    tolerance = 1e-5  # rounding may differ when a kernel groups its sums in another way
    for position in range(1, ids.size(1)):
        if (changed_positions(model, ids, position)[:position] > tolerance).any():
            return True
    return False
