"""How large a batch is worth its cost: the gradient's noise against its signal.

Short because it is one formula.
"""

from jaxtyping import Float
from torch import Tensor


def noise_scale(
    small_norms: Float[Tensor, " n_small"],
    large_norms: Float[Tensor, " n_large"],
    small_size: int,
    large_size: int,
) -> float:
    """The simple noise scale, in sentences: the batch size at which noise and signal are equal.

    Over batches of size B the mean squared length of the gradient is |G|^2 + S / B, where G is the
    gradient on all of the data and S the variance of one sentence's. Two sizes give two equations
    for |G|^2 and S; the noise scale is S / |G|^2.

    Args:
        small_norms: lengths of the gradients of some small batches.
        large_norms: those of some large batches, at the same weights.
        small_size: sentences in a small batch.
        large_size: sentences in a large batch.

    Source: McCandlish et al., "An Empirical Model of Large-Batch Training" (2018), appendix A.1.
    """
    small, large = (small_norms**2).mean(), (large_norms**2).mean()
    noise = (small - large) / (1 / small_size - 1 / large_size)
    signal = (large_size * large - small_size * small) / (large_size - small_size)
    return (noise / signal).item()
