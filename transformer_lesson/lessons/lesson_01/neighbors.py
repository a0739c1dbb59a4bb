"""Which row of a table lies nearest to which, the measurement that learners write.

Short, because it is one function.
"""

import math

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def nearest_neighbors(vectors: Float[Tensor, "n d_model"]) -> Int[Tensor, " n"]:
    """Return, for each row, the number of the other row with the largest cosine.

    Args:
        vectors: two rows or more, none of them all zeros.
    """
    rows = F.normalize(vectors, dim=-1)
    cosines = rows @ rows.mT  # (n, n)
    cosines.fill_diagonal_(-math.inf)  # no row is its own neighbor
    return cosines.argmax(dim=-1)
