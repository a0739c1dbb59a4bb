"""From the codes of two positions to the rotation between them.

Short, because only one exercise of one lesson needs it.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def rotation_between(
    before: Float[Tensor, " d_model"], after: Float[Tensor, " d_model"]
) -> Float[Tensor, "d_model d_model"]:
    """Return the matrix R with before R = after that rotates each pair of numbers.

    A pair (s, c) is the tip of a clock's hand, s across and c up. If it becomes (s', c'), its hand
    turned by an angle with cosine s s' + c c' and sine c s' - s c'.

    Raises:
        ValueError: the codes have an odd size.
    """
    if before.size(0) % 2:
        raise ValueError(f"the codes have {before.size(0)} numbers, but hands need two each.")
    (s, c), (s_after, c_after) = before.unflatten(0, (-1, 2)).T, after.unflatten(0, (-1, 2)).T
    cosine, sine = s * s_after + c * c_after, c * s_after - s * c_after  # (d_model / 2,) each
    blocks = torch.stack([cosine, -sine, sine, cosine], dim=-1).view(-1, 2, 2)
    return torch.block_diag(*blocks)  # (d_model, d_model)
