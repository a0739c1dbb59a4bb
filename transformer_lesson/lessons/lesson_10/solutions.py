"""Lesson 10: a curve through a few runs."""

import math
from statistics import linear_regression


def fit_power_law(sizes, losses, floors):
    """Return floor, a and b of loss = floor + a * size ** -b, with the floor that fits best."""
    x = [math.log(size) for size in sizes]
    fits = []
    for floor in floors:
        line = linear_regression(x, [math.log(loss - floor) for loss in losses])
        a, b = math.exp(line.intercept), -line.slope
        errors = [(floor + a * n**-b - loss) ** 2 for n, loss in zip(sizes, losses, strict=True)]
        fits.append((sum(errors), floor, a, b))
    return min(fits)[1:]
