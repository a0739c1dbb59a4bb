"""What a head looks at, in one number per head: scores of attention weights."""

import torch
from jaxtyping import Float
from torch import Tensor


def previous_token_score(
    weights: Float[Tensor, "batch head query key"],
) -> Float[Tensor, " head"]:
    """Return the mean weight that each head gives to the token before its query.

    The first query has no token before it and is left out.

    Args:
        weights: attention weights of one layer, shape (batch, head, query, key).

    Raises:
        ValueError: weights that are not square, or of fewer than 2 tokens.
    """
    return _mean_weight_back(weights, 1, first=1)


def induction_score(
    weights: Float[Tensor, "batch head query key"], period: int
) -> Float[Tensor, " head"]:
    """Return the mean weight that each head gives to what came after its token the last time.

    Query i has the same token as position i - period; what came after it is the key at
    i - period + 1. Queries of the first period have no such key and are left out. If a sequence
    repeats more than twice, a head may look at any earlier occurrence; the score counts only the
    last one.

    Args:
        weights: of a sequence that repeats after `period` tokens, shape (batch, head, query, key).
        period: tokens from one occurrence to the next.

    Returns:
        From 0 to 1 for each head, shape (head,).

    Raises:
        ValueError: weights that are not square, or too short for the period.

    Source: Olsson et al., "In-context Learning and Induction Heads" (2022), prefix matching score.
    """
    return _mean_weight_back(weights, period - 1, first=period)


def cut_off(weights: Float[Tensor, "head query key"], window: int) -> Float[Tensor, " key"]:
    """Return what a window would take from each token, as a share of all attention.

    With a window of w, query i sees itself and the w - 1 tokens before it. What it gives to tokens
    farther back is cut off. Each query of each head has 1 to give; the numbers add up to the share
    of the total that the window cuts off.

    Args:
        weights: attention weights of a text that was read without the window, of one layer's heads
            or of all.
        window: how many tokens each one would see, itself included.

    Raises:
        ValueError: weights that are not square, or a window smaller than 1.
    """
    n = weights.size(-1)
    if weights.size(-2) != n:
        raise ValueError(f"weights have {weights.size(-2)} queries and {n} keys: pass as many.")
    if window < 1:
        raise ValueError(f"window is {window}, but a token sees at least itself.")
    token = torch.arange(n, device=weights.device)
    far = token[:, None] - token >= window  # (query, key)
    return (weights * far).mean(dim=0).sum(dim=0) / n  # (key,)


def _mean_weight_back(weights: Tensor, back: int, first: int) -> Tensor:
    """Return the mean weight on the key `back` tokens before the query, from query `first` on."""
    n = weights.size(-1)
    if weights.size(-2) != n:
        raise ValueError(
            f"weights have {weights.size(-2)} queries and {n} keys: pass self-attention, in which "
            "both are the same tokens."
        )
    if not 1 <= first < n:
        raise ValueError(
            f"the score needs a token that is {first} positions back, but there are {n} tokens: "
            f"the period must be from 1 to {n - 1}."
        )
    on_diagonal = weights.diagonal(-back, dim1=-2, dim2=-1)  # (batch, head, query from back on)
    return on_diagonal[..., first - back :].mean(dim=(0, 2))  # (head,)
