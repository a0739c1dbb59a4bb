"""Change one token: which outputs move, and whether earlier ones do."""

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
        new_id: what to put there; by default 0, or 1 if the token is 0.

    Returns:
        The largest absolute change at each position, shape (n,): NaN where an output is NaN, and 0
        where an infinity stays.

    Raises:
        ValueError: position is outside the sequence.
    """
    n = ids.size(1)
    if not 0 <= position < n:
        raise ValueError(f"position is {position}, but the sequence has positions 0 to {n - 1}.")
    changed = ids.clone()
    old = ids[:, position]
    changed[:, position] = (old == 0).long() if new_id is None else new_id
    before, after = model(ids), model(changed)  # (batch, n, ...)
    difference = (after - before).abs().masked_fill(after == before, 0)  # inf - inf is NaN
    return difference.flatten(2).amax(dim=(0, 2))  # (n,)


def leaks_future(model: Model, ids: Int[Tensor, "batch n"]) -> bool:
    """Return whether changing a token moves the output of any earlier position.

    Args:
        model: a function from ids (batch, n) to outputs (batch, n, anything), in evaluation
            mode.
        ids: token ids, one or more per sentence.

    Raises:
        ValueError: an output is NaN, so that nobody can say whether it moves.
    """
    tolerance = 1e-5  # rounding may differ when a kernel groups its sums in another way
    for position in range(1, ids.size(1)):
        earlier = changed_positions(model, ids, position)[:position]
        if earlier.isnan().any():
            raise ValueError(
                f"the model's output at position {int(earlier.isnan().nonzero()[0])} is nan, so "
                "nobody can see whether it moves: fix that first."
            )
        if (earlier > tolerance).any():
            return True
    return False
