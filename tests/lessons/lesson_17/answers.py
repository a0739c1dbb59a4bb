"""What learners might write for the exercises of lesson 17."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("patches")
def _(pictures, size):
    return F.unfold(pictures[:, None], size, stride=size).mT


@right("patches")
def _(pictures, size):
    """Square by square."""
    places = range(0, pictures.size(-1), size)
    squares = [pictures[:, y : y + size, x : x + size] for y in places for x in places]
    return torch.stack([square.flatten(1) for square in squares], dim=1)


@right("patches")
def _(pictures, size):
    squares = pictures.unfold(1, size, size).unfold(2, size, size)
    return squares.flatten(1, 2).flatten(2)


@wrong("patches", "usual", "the sizes of the grid and of the patch are exchanged")
def _(pictures, size):
    n, side, _ = pictures.shape
    k = side // size
    return pictures.reshape(n, size, k, size, k).transpose(2, 3).reshape(n, k * k, size * size)


@wrong("patches", "unusual", "a window that moves by one pixel")
def _(pictures, size):
    return F.unfold(pictures[:, None], size).mT


@right("foresee")
def _(pilots, steps, misses):
    """In logarithms, as a straight line through two points."""
    (x1, y1), (x2, y2) = [(math.log(n), math.log(loss)) for n, loss in pilots]
    y = y1 + (y2 - y1) * (math.log(steps) - x1) / (x2 - x1)
    ordered = sorted(misses)
    half = len(ordered) // 2
    middle = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
    last = pilots[1][1]
    return tuple(min(math.exp(y) * of, last) for of in (middle, ordered[0], ordered[-1]))


@right("foresee")
def _(pilots, steps, misses):
    """With a and b, as the law is written."""
    (n1, l1), (n2, l2) = pilots
    b = -math.log(l2 / l1, n2 / n1)
    a = l1 * n1**b
    made = torch.tensor([a * steps**-b * miss for miss in misses], dtype=torch.float64)
    three = [made.quantile(0.5).item(), made.min().item(), made.max().item()]
    return [min(one, l2) for one in three]


@wrong("foresee", "usual", "the interval is made of the expectation, not of the line")
def _(pilots, steps, misses):
    (n1, l1), (n2, l2) = pilots
    b = math.log(l1 / l2) / math.log(n2 / n1)
    expected = l2 * (steps / n2) ** -b * sorted(misses)[len(misses) // 2]
    return expected, expected * min(misses), min(expected * max(misses), l2)


@wrong("foresee", "unusual", "the line through the logarithms to base 10 and the loss itself")
def _(pilots, steps, misses):
    (n1, l1), (n2, l2) = pilots
    slope = (l2 - l1) / (math.log10(n2) - math.log10(n1))
    line = l2 + slope * (math.log10(steps) - math.log10(n2))
    return tuple(min(line * sorted(misses)[i], l2) for i in (len(misses) // 2, 0, -1))
