"""One layer on several processes: each has some of the heads, and some of the hidden units.

Every process holds the whole text and a part of each matrix. Attention and the feed-forward
network both begin with matrices whose columns are independent (a head's queries, a unit's
question) and end with one whose rows are added up. So each process computes its part on its own,
and the parts are summed once per sub-layer.

Source: Shoeybi et al., "Megatron-LM" (2019), section 3, whose f and g are `spread` and `add_parts`.
"""

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.attention import (
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)


def processes() -> tuple[int, int]:
    """Return this process's number and how many there are: 0 and 1 without `torchrun`."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share_of(matrix: Tensor, axis: int) -> Tensor:
    """Return this process's part of a matrix, equal numbers of rows (axis 0) or columns (1).

    Raises:
        ValueError: the axis cannot be cut into so many equal parts.
    """
    rank, count = processes()
    if matrix.size(axis) % count:
        raise ValueError(f"{matrix.size(axis)} cannot be cut into {count} equal parts.")
    return matrix.chunk(count, dim=axis)[rank]


class _Spread(torch.autograd.Function):
    """Does nothing forward, and sums the gradients of all processes backward."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return _summed(gradient)


class _AddParts(torch.autograd.Function):
    """Sums the parts of all processes forward, and does nothing backward."""

    @staticmethod
    def forward(ctx, part: Tensor) -> Tensor:
        return _summed(part)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient.clone()


def _summed(part: Tensor) -> Tensor:
    total = part.clone()
    if processes()[1] > 1:
        dist.all_reduce(total)
    return total


def spread(x: Tensor) -> Tensor:
    """Pass x to the parts of a layer. Its gradient is the sum of the parts' gradients."""
    return _Spread.apply(x)


def add_parts(part: Tensor) -> Tensor:
    """Return the sum of this part and those of all other processes."""
    return _AddParts.apply(part)


def attention_in_parts(
    x: Float[Tensor, "batch n d_model"],
    W_Q: Float[Tensor, "d_model part"],
    W_K: Float[Tensor, "d_model part"],
    W_V: Float[Tensor, "d_model part"],
    W_O: Float[Tensor, "part d_model"],
    n_heads: int,
    mask: Tensor | None = None,
) -> Float[Tensor, "batch n d_model"]:
    """Return multi-head attention, of which this process computes its own heads.

    Args:
        x: the whole stream, shape (batch, n, d_model).
        W_Q, W_K, W_V: this process's columns, `share_of(W, 1)`.
        W_O: this process's rows, `share_of(W_O, 0)`.
        n_heads: of this process.
        mask: `True` = may attend; broadcasts to (batch, head, query, key).
    """
    x = spread(x)
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))  # its own heads
    heads, _ = scaled_dot_product_attention(Q, K, V, mask)
    return add_parts(merge_heads(heads) @ W_O)


def feed_forward_in_parts(
    x: Float[Tensor, "*batch d_model"],
    W_1: Float[Tensor, "d_model part"],
    b_1: Float[Tensor, " part"],
    W_2: Float[Tensor, "part d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """Return max(0, x W_1 + b_1) W_2 + b_2, of which this process computes its own hidden units.

    Args:
        x: the whole stream, shape (..., d_model).
        W_1, b_1: this process's columns and numbers, `share_of(W_1, 1)`, `share_of(b_1, 0)`.
        W_2: this process's rows, `share_of(W_2, 0)`.
        b_2: whole; it is added once, after the sum.
    """
    return add_parts((spread(x) @ W_1 + b_1).relu() @ W_2) + b_2
