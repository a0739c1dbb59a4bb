"""More features than dimensions: a toy model that squeezes five numbers through two.

If features are rarely active together, it stores more of them than it has dimensions, as directions
that are not orthogonal.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

FEATURES = 5


class TrainedToy(NamedTuple):
    """A trained toy: each feature's direction, the biases, and the last loss."""

    W: Float[Tensor, "feature dimension"]
    b: Float[Tensor, " feature"]
    loss: float

    def kept(self) -> int:
        """Return how many features have a direction longer than 0.5; a fully stored one has 1."""
        return int((self.W.norm(dim=1) > 0.5).sum())


def squeeze(density: float, seed: int = 0, steps: int = 1500) -> TrainedToy:
    """Train x' = ReLU(x W W^T + b) to reconstruct five numbers x through two.

    Each feature is active, uniform in [0, 1], for a share of the time, and 0 otherwise. Feature i
    has weight 0.9^i in the loss, the mean of 0.9^i (x_i - x'_i)^2.

    Args:
        density: the share of the time in which a feature is active, over 0 and at most 1.
        seed: of weights and examples.
        steps: of Adam, 512 examples each.

    Raises:
        ValueError: a density that is not a share.

    Source: Elhage et al., "Toy Models of Superposition" (2022), section 2.
    """
    if not 0 < density <= 1:
        raise ValueError(f"density is {density}, but a share of the time is over 0, at most 1.")
    generator = torch.Generator().manual_seed(seed)
    W = nn.Parameter(0.5 * torch.randn(FEATURES, 2, generator=generator))
    b = nn.Parameter(torch.zeros(FEATURES))
    importance = 0.9 ** torch.arange(FEATURES)
    optimizer = torch.optim.Adam([W, b], lr=0.01)
    for _ in range(steps):
        sizes, chances = torch.rand(2, 512, FEATURES, generator=generator)
        x = sizes * (chances < density)  # (batch, feature)
        reconstruction = torch.relu(x @ W @ W.T + b)
        loss = (importance * (x - reconstruction).square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return TrainedToy(W.detach(), b.detach(), loss.item())
