"""Which query may attend to which key: boolean masks, `True` = may attend.

This is the convention of `torch.nn.functional.scaled_dot_product_attention`. The older
`nn.MultiheadAttention` uses the opposite one (`True` = hidden), so give it `~mask`.
Masks combine with `&`: a key must be allowed by every mask.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(n: int, device: torch.device | str | None = None) -> Bool[Tensor, "1 1 n n"]:
    """Return the mask that lets position i attend to positions 0 to i, never later.

    Args:
        n: length of the sequence, in tokens.
        device: where the mask is made.

    Returns:
        Shape (1, 1, query, key): the lower triangle, diagonal included, is `True`. The two
        leading ones broadcast over batch and head.

    Raises:
        ValueError: n is smaller than 1.

    Source: "Attention Is All You Need" (2017), section 3.2.3.
    """
    if n < 1:
        raise ValueError(f"causal_mask: n is {n}, but a sequence has at least 1 token.")
    lower = torch.ones(n, n, dtype=torch.bool, device=device).tril()  # (query, key)
    return lower[None, None]  # (1, 1, query, key)


def window_mask(
    n: int, window: int, device: torch.device | str | None = None
) -> Bool[Tensor, "1 1 n n"]:
    """Return the causal mask cut to a band: each position sees itself and window - 1 before it.

    Args:
        n: length of the sequence, in tokens.
        window: how many tokens each one sees, itself included.
        device: where the mask is made.

    Raises:
        ValueError: n or window is smaller than 1.

    Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et al., "Mistral 7B" (2023).
    """
    if window < 1:
        raise ValueError(f"window_mask: window is {window}, but a token sees at least itself.")
    return causal_mask(n, device).triu(1 - window)  # (1, 1, query, key)


def padding_mask(ids: Int[Tensor, "batch key"], pad_id: int) -> Bool[Tensor, "batch 1 1 key"]:
    """Return the mask that hides padding tokens from every query.

    Args:
        ids: token ids, shape (batch, key).
        pad_id: the id that fills short sentences up.

    Returns:
        Shape (batch, 1, 1, key): `True` where a real token stands. The ones broadcast over
        head and query, so the same mask serves self-attention and cross-attention.

    Raises:
        ValueError: ids is not two-dimensional.

    Source: practice; the 2017 paper does not mention padding.
    """
    if ids.dim() != 2:
        raise ValueError(
            f"padding_mask: ids has shape {tuple(ids.shape)}, but it must be (batch, key); "
            "for one sentence use ids[None]."
        )
    return (ids != pad_id)[:, None, None, :]  # (batch, 1, 1, key)
