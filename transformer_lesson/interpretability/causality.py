"""Change one token: which outputs move, whether earlier ones do, and which word told which."""

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


def who_told(
    weights: Float[Tensor, "batch head n n"],
    values: Float[Tensor, "batch head n d_head"],
    new_weights: Float[Tensor, "batch head n n"],
    new_values: Float[Tensor, "batch head n d_head"],
) -> Float[Tensor, "batch n n"]:
    """Return how much news each word gets from each when a word of the sentence is replaced.

    A head brings word i `weights[i, j] * values[j]` from word j. The two runs give two vectors, and
    the news is the length of their difference, with all heads end to end (as `merge_heads` lays
    them out, before W_O mixes them).

    Args:
        weights, values: of a self-attention that read the first sentence.
        new_weights, new_values: of the same self-attention, reading the second.

    Returns:
        The news that i gets from j in row i, column j, shape (batch, n, n).

    Source: the weighted vectors of Kobayashi et al., "Attention is Not Only a Weight" (2020).
    Differs: it takes the difference of two sentences, and leaves W_O out.
    """
    before = weights[..., None] * values[:, :, None]  # (batch, head, n, n, d_head)
    now = new_weights[..., None] * new_values[:, :, None]
    return (now - before).square().sum(dim=(1, -1)).sqrt()  # (batch, n, n)
