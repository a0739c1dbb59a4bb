"""Scaling: how the loss falls with size and text, fitted to small runs to predict a larger one.

`size_and_text` and `scaling_law` train the runs.
"""

import math
from collections.abc import Sequence
from itertools import product
from statistics import linear_regression
from typing import NamedTuple

import torch

Number = int | float


def fit_power_law(
    sizes: Sequence[Number], losses: Sequence[float], floors: Sequence[float]
) -> tuple[float, float, float]:
    """Fit loss = floor + a * size ** -b, a straight line in logarithms for each floor.

    log(loss - floor) = log(a) - b * log(size). The floor is chosen whose curve has the smallest sum
    of squared distances from the losses themselves: distances in logarithms differ with the floor
    and cannot be compared.

    Args:
        sizes: of the runs, such as parameters or tokens, at least two different ones.
        losses: what they reached, in any unit.
        floors: candidates for the loss that no size gets below; 0.0 is none.

    Returns:
        floor, a and b.

    Raises:
        ValueError: a floor is not below every loss.

    Source: Kaplan and others (2020); with a floor, Hoffmann and others (2022).
    Differs: they fit size and text together, with a loss that forgives outliers.
    """
    if not floors or max(floors) >= min(losses):
        raise ValueError(
            f"floors are {list(floors)}, but there must be at least one, and all must be below the "
            f"smallest loss, {min(losses)}: leave the higher ones out."
        )
    x = [math.log(size) for size in sizes]
    fits = []
    for floor in floors:
        line = linear_regression(x, [math.log(loss - floor) for loss in losses])
        a, b = math.exp(line.intercept), -line.slope
        distances = (floor + a * size**-b - loss for size, loss in zip(sizes, losses, strict=True))
        fits.append((sum(distance**2 for distance in distances), floor, a, b))
    return min(fits)[1:]


class ScalingLaw(NamedTuple):
    """Loss = E + A / N^alpha + B / D^beta, for N weights that read D tokens.

    Source: Hoffmann and others, "Training Compute-Optimal Large Language Models" (2022), eq. 2.
    """

    E: Number
    A: Number
    B: Number
    alpha: Number
    beta: Number

    def loss(self, size: Number, tokens: Number) -> float:
        """Return the predicted loss, in nats per token."""
        return self.E + self.A / size**self.alpha + self.B / tokens**self.beta

    def best_size(self, operations: Number) -> float:
        """Return the size N whose loss is lowest when 6 N D operations are to be spent.

        Source: Hoffmann and others (2022), eq. 4.
        """
        ratio = self.alpha * self.A / (self.beta * self.B)
        share = self.beta / (self.alpha + self.beta)
        return ratio ** (1 / (self.alpha + self.beta)) * (operations / 6) ** share

    def tokens_for(self, loss: Number, size: Number) -> float:
        """Return how many tokens a model must read to reach a loss; infinite if it cannot."""
        left = loss - self.E - self.A / size**self.alpha
        return (self.B / left) ** (1 / self.beta) if left > 0 else math.inf

    def cheapest(self, loss: Number, written: Number) -> tuple[float, float]:
        """Return size and tokens that reach a loss with the fewest operations in a model's life.

        Training takes 6 N D operations, and each token that is later written or read 2 N.

        Args:
            loss: to be reached, above E.
            written: tokens in its whole life after training.

        Source: Sardana and others, "Beyond Chinchilla-Optimal" (2023), eq. 3.
        Differs: they look for the root of a derivative; here sizes 1 % apart are tried.
        """
        smallest = (self.A / (loss - self.E)) ** (1 / self.alpha)
        sizes = [smallest * 1.01**step for step in range(1, 2000)]

        def cost(size: Number) -> float:
            return size * (6 * self.tokens_for(loss, size) + 2 * written)

        size = min(sizes, key=cost)
        return size, self.tokens_for(loss, size)


PUBLISHED = ScalingLaw(1.69, 406.4, 410.7, 0.34, 0.28)
"""Hoffmann and others (2022), eq. 10, as printed."""
REFITTED = ScalingLaw(1.8172, 482.01, 2085.43, 0.3478, 0.3658)
"""Besiroglu and others, "Chinchilla Scaling: A replication attempt" (2024), table 1."""


def fit_scaling_law(
    sizes: Sequence[Number],
    tokens: Sequence[Number],
    losses: Sequence[Number],
    exponents: Sequence[Number],
) -> tuple[Number, Number, Number, Number, Number]:
    """Fit loss = E + A / N^alpha + B / D^beta by least squares.

    For each pair of exponents, E, A and B are the solution of a linear problem. The pair with the
    smallest sum of squared distances from the losses is chosen.

    Args:
        sizes: N of each run.
        tokens: D of each run.
        losses: what each reached.
        exponents: to choose alpha and beta from.

    Returns:
        E, A, B, alpha and beta.

    Raises:
        ValueError: fewer than three different sizes or numbers of tokens: through two points, every
            exponent fits alike.

    Source: Hoffmann and others (2022), section 3.3.
    Differs: they fit logarithms, with a loss that forgives outliers, and search by gradient.
    """
    for name, values in (("sizes", sizes), ("numbers of tokens", tokens)):
        if (count := len(set(values))) < 3:
            raise ValueError(
                f"A law needs runs of three different {name}; these have {count}. Through fewer, "
                "every exponent fits alike: add runs."
            )
    N, D, L = (torch.tensor(values, dtype=torch.float64) for values in (sizes, tokens, losses))
    fits = []
    for alpha, beta in product(exponents, repeat=2):
        X = torch.stack([torch.ones_like(N), N**-alpha, D**-beta], dim=1)  # (run, 3)
        solved = torch.linalg.lstsq(X, L[:, None]).solution  # (3, 1)
        error = ((X @ solved)[:, 0] - L).square().sum().item()
        fits.append((error, *solved[:, 0].tolist(), alpha, beta))
    return min(fits)[1:]
