"""How far a share counted on a sample may be from the true one. One formula, so this is short."""

import math


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
