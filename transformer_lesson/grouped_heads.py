"""Grouped-query attention: several query heads share one head of keys and values."""

from jaxtyping import Float
from torch import Tensor


def check_heads(d_model: int, n_heads: int | None, n_kv_heads: int | None) -> None:
    """Raise a `ValueError` unless d_model splits into n_heads and these into n_kv_heads groups."""
    if not n_heads or n_heads < 1 or d_model % n_heads:
        raise ValueError(f"d_model = {d_model} cannot be split into {n_heads} equal heads.")
    if n_kv_heads is not None and (n_kv_heads < 1 or n_heads % n_kv_heads):
        raise ValueError(f"n_kv_heads is {n_kv_heads}: make it a divisor of n_heads = {n_heads}.")


def repeat_kv(
    x: Float[Tensor, "batch kv_head n d_head"], n_groups: int
) -> Float[Tensor, "batch head n d_head"]:
    """Give each query head its keys (or values): repeat each head n_groups times, side by side.

    Query heads 0 to n_groups - 1 read key head 0, the next n_groups read key head 1, and so on.

    Args:
        x: keys or values, shape (batch, kv_head, n, d_head).
        n_groups: query heads per key head.

    Returns:
        Shape (batch, kv_head * n_groups, n, d_head).

    Raises:
        ValueError: n_groups is under 1.

    Source: Ainslie et al., "GQA" (2023), section 2.2.
    """
    if n_groups < 1:
        raise ValueError(f"n_groups is {n_groups}, but each key head serves at least 1 query head.")
    return x.repeat_interleave(n_groups, dim=1)  # (batch, head, n, d_head)
