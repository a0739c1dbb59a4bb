"""Lesson 17: a picture as tokens, a line through two runs."""

import math
from statistics import median


def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k = side // size
    squares = pictures.reshape(n, k, size, k, size).transpose(2, 3)
    return squares.reshape(n, k * k, size * size)


def foresee(pilots, steps, misses):
    """Return what a long run is expected to reach, and the lowest and the highest."""
    (early, first), (late, second) = pilots
    b = math.log(first / second) / math.log(late / early)
    foreseen = second * (steps / late) ** -b
    return tuple(
        min(foreseen * miss, second) for miss in (median(misses), min(misses), max(misses))
    )
