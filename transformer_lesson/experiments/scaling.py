"""A scaling curve: how the loss falls with size, fitted to small runs to foresee a larger one.

Short because it is one formula; `size_and_text` trains the runs.
"""

import math
from collections.abc import Sequence
from statistics import linear_regression


def fit_power_law(
    sizes: Sequence[int | float], losses: Sequence[float], floors: Sequence[float]
) -> tuple[float, float, float]:
    """Fit loss = floor + a * size ** -b, a straight line in logarithms for each floor.

    log(loss - floor) = log(a) - b * log(size). Of all floors the one is taken whose curve has the
    least sum of squared distances from the losses themselves: distances in logarithms differ with
    the floor and cannot be compared.

    Args:
        sizes: of the runs, such as parameters or tokens, two different ones at least.
        losses: what they reached, in any unit.
        floors: losses that no size gets below, to choose from; 0.0 is none.

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
