"""How far a share or a mean of a sample may be from the true one: two formulas."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
)
"""Of Student's t, the value that 2.5 % exceed, by degrees of freedom from 1 on."""


def wilson(right: int, asked: int, z: float = 1.96) -> tuple[float, float]:
    """Return a confidence interval for the share of right answers, from a sample.

    Formula: with p = right / asked and n = asked,
    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n). Unlike p ± z standard errors it
    stays within 0 and 1, and has a width even if all answers are right.

    Args:
        right, asked: numbers of answers; `asked` is at least 1.
        z: 1.96 for 95 %.

    Raises:
        ValueError: no answers, or more right ones than answers.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.
    """
    if not 0 <= right <= asked or asked == 0:
        raise ValueError(
            f"{right} right answers of {asked}: ask at least one, of which 0 to all are right."
        )
    p, n = right / asked, asked
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))


def student(values: Sequence[float]) -> tuple[float, float, float]:
    """Return a mean and its 95 % confidence interval, from a few values of a normal population.

    Formula: mean ± t s / sqrt(n), with the sample's standard deviation s and t of n - 1 degrees of
    freedom.

    Args:
        values: from 2 to 20.

    Raises:
        ValueError: fewer or more values.

    Source: Student, "The Probable Error of a Mean", Biometrika 6 (1908).
    """
    if not 2 <= len(values) <= len(STUDENT) + 1:
        raise ValueError(f"{len(values)} values: pass from 2 to {len(STUDENT) + 1}.")
    mean = fmean(values)
    half = STUDENT[len(values) - 2] * stdev(values) / len(values) ** 0.5
    return mean, mean - half, mean + half
