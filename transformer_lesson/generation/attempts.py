"""Several attempts at one question: whether one of them is right, and what most of them say.

Short because both are one line of counting.
"""

import math
from collections import Counter
from collections.abc import Sequence


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that of k attempts at least one is right, from n attempts, c of them right.

    1 - C(n - c, k) / C(n, k): of all ways to pick k of the n, those with none of the c are lost.
    That is unbiased for every n; 1 - (1 - c / n)^k is too low.

    Args:
        n: attempts made, at least k.
        c: how many were right.
        k: attempts allowed.

    Raises:
        ValueError: there are fewer than k attempts, or more right ones than attempts.

    Source: Chen et al., "Evaluating Large Language Models Trained on Code" (2021), equation 1.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(
            f"n = {n}, c = {c}, k = {k}: of n attempts c are right, at most n, and k are picked, "
            "from 1 to n."
        )
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def majority(answers: Sequence[str]) -> str:
    """Return what most attempts say; ties go to the earliest.

    Source: Wang et al., "Self-Consistency Improves Chain of Thought Reasoning" (2022).
    """
    return Counter(answers).most_common(1)[0][0]
