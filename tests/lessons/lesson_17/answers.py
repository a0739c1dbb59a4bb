"""What learners might write for the exercises of lesson 17."""

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
