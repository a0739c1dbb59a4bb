"""Which query may attend to which key: boolean masks, `True` = may attend.

This is the convention of `torch.nn.functional.scaled_dot_product_attention`. The older
`nn.MultiheadAttention` uses the opposite one (`True` = hidden), so give it `~mask`.
Masks combine with `&`: a key must be allowed by every mask.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_lesson.model.config import ModelConfig


class Causal:
    """Marker: causal only, so the kernel needs no mask tensor."""


CAUSAL = Causal()
Mask = Tensor | Causal | None  # what attention takes; `None` hides nothing


def written_out(mask: Mask, scores: Tensor) -> Tensor | None:
    """Return the mask of these scores as a tensor: `CAUSAL` becomes a triangle."""
    return causal_mask(scores.size(-1), scores.device) if mask is CAUSAL else mask


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


def sink_mask(
    n: int, window: int, sinks: int, device: torch.device | str | None = None
) -> Bool[Tensor, "1 1 n n"]:
    """Return the window's mask with the first `sinks` tokens always visible.

    Trained models park unneeded attention on the first tokens. A window that drops them takes that
    place away, and the model fails; keeping a few of them is enough.

    Args:
        n: length of the sequence, in tokens.
        window: how many tokens each one sees, itself included.
        sinks: how many tokens at the beginning all later ones see, whatever the window; 0 for
            none.
        device: where the mask is made.

    Raises:
        ValueError: n or window is smaller than 1, or sinks smaller than 0.

    Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (2023).
    Differs: they also renumber the kept tokens.
    """
    if sinks < 0:
        raise ValueError(f"sink_mask: sinks is {sinks}, but the fewest is 0: no sink.")
    first = torch.arange(n, device=device) < sinks  # (key,)
    return window_mask(n, window, device) | (first & causal_mask(n, device))


def padding_mask(ids: Int[Tensor, "batch key"], pad_id: int) -> Bool[Tensor, "batch 1 1 key"]:
    """Return the mask that hides padding tokens from every query.

    Args:
        ids: token ids, shape (batch, key).
        pad_id: the id that fills short sentences.

    Returns:
        Shape (batch, 1, 1, key): `True` at real tokens. The ones broadcast over head and query,
        so the same mask serves self-attention and cross-attention.

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


def real_tokens(ids: Tensor, config: ModelConfig) -> Tensor | None:
    """Return the padding mask of ids, or `None` if the model has no padding token."""
    return None if config.pad_id is None else padding_mask(ids, config.pad_id)


def target_masks(ids: Tensor, config: ModelConfig, start: int = 0) -> list[Mask]:
    """Return for each layer which ids each token from start on may see: none later, no padding.

    Some layers may have a window. A single new token, the last, may see every real one: the causal
    mask has nothing to hide.
    """
    kinds = {window: _mask_of_window(ids, config, start, window) for window in set(config.windows)}
    return [kinds[window] for window in config.windows]


def _mask_of_window(ids: Tensor, config: ModelConfig, start: int, window: int | None) -> Mask:
    real = real_tokens(ids, config)  # (batch, 1, 1, n)
    n, window = ids.size(1), window or ids.size(1)
    if start == n - 1 and window >= n:
        return real
    if start == 0 and window >= n and real is None:
        return CAUSAL
    mask = window_mask(n, window, ids.device)[:, :, start:]  # (1, 1, new, n)
    return mask if real is None else mask & real  # (batch or 1, 1, new, n)


def check_mask(mask: Tensor, shape: tuple[int, ...]) -> None:
    """Raise a `ValueError` unless mask is boolean and broadcasts to the scores' shape."""
    if mask.dtype != torch.bool:
        raise ValueError(f"mask has dtype {mask.dtype}, but it must be boolean, True = may attend.")
    pairs = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.dim() > len(shape) or any(m not in (1, size) for m, size in pairs):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, which does not broadcast to the scores' "
            f"shape {tuple(shape)} = (..., query, key)."
        )
