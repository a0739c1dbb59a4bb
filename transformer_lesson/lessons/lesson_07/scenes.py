"""Small pictures of two shapes each, and captions that say what is where.

They are drawn with the pen of the digits in `vision`: every line trembles, every shape is turned.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_lesson.lessons.lesson_07.vision import noisy, patches, strokes

SIDE, PATCH = 24, 6  # pixels of a picture and of a patch
N_PATCHES = (SIDE // PATCH) ** 2
RADII = {"large": 5.0, "small": 3.0}  # pixels
SHAPES = ("circle", "square", "triangle")
THINGS = tuple(f"{size} {shape}" for size in RADII for shape in SHAPES)


class Scene(NamedTuple):
    """What a picture shows; the first thing is on the left or on top."""

    first: str
    relation: str
    second: str

    def __str__(self) -> str:
        return f"a {self.first} {self.relation} a {self.second}"


SCENES = tuple(Scene(a, how, b) for a in THINGS for how in ("left of", "above") for b in THINGS)
NEVER = tuple(scene for scene in SCENES if "small triangle" in scene)
"""Scenes with a thing that never occurs in training."""
APART = tuple(scene for scene in SCENES if {"large circle", "large square"} == {*scene[::2]})
"""Scenes with two things that occur in training, but never together."""
KNOWN = tuple(scene for scene in SCENES if scene not in NEVER + APART)


def beginning_with(thing: str) -> list[Scene]:
    """Return the scenes whose first thing is this one, such as "small triangle"."""
    return [scene for scene in SCENES if scene.first == thing]


class Drawings(NamedTuple):
    """Pictures and what they show.

    Args:
        pictures: from 0 (paper) to 1 (ink), shape (n, 24, 24).
        scenes: n of them; `str` gives the caption.
        where: which patches have ink of the first and of the second thing, shape (n, 2, patches).
    """

    pictures: Float[Tensor, "n 24 24"]
    scenes: list[Scene]
    where: Bool[Tensor, "n 2 patches"]


def _outline(shape: str) -> Float[Tensor, "12 2"]:
    """Return twelve points around a shape of radius 1, x and y, y growing downwards."""
    if shape == "circle":
        angles = torch.arange(12) * (torch.pi / 6)
        return torch.stack([angles.cos(), angles.sin()], dim=-1)
    square = [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]]
    corners = torch.tensor(square if shape == "square" else [[0, -1.1], [1.05, 0.8], [-1.05, 0.8]])
    share = torch.arange(12 // len(corners))[:, None] / (12 // len(corners))
    return torch.lerp(corners[:, None], corners.roll(-1, 0)[:, None], share).flatten(0, 1)


def _ink(
    things: list[str], centers: Tensor, generator: torch.Generator
) -> Float[Tensor, "n 24 24"]:
    """Draw one thing in each picture, with random rotation, size, tremor and pen."""

    def between(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(len(things), *shape, generator=generator)

    outlines = {thing: _outline(thing.split()[1]) * RADII[thing.split()[0]] for thing in THINGS}
    turn = between(-0.15, 0.15)
    turned = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()], dim=-1)
    points = torch.stack([outlines[thing] for thing in things]) @ turned.reshape(-1, 2, 2)
    points = points * between(0.9, 1.1, 1, 1) + between(-0.2, 0.2, 12, 2) + centers[:, None]
    lines = torch.stack([points, points.roll(-1, 1)], dim=2)  # (n, 12, from and to, x and y)
    parts = zip(lines.split(64), between(0.5, 0.9, 1).split(64), strict=True)  # faster in parts
    return torch.cat([strokes(line, pen, SIDE) for line, pen in parts])


def draw(n: int, seed: int, scenes: Sequence[Scene] = SCENES) -> Drawings:
    """Draw n pictures of these scenes, chosen at random.

    Args:
        n: how many pictures.
        seed: of the random numbers.
        scenes: to choose from.
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = [scenes[i] for i in torch.randint(len(scenes), (n,), generator=generator).tolist()]
    beside = torch.tensor([scene.relation == "left of" for scene in chosen])
    ink = []
    for place in (0, 1):
        jitter = torch.rand(n, 2, generator=generator) - 0.5
        middle = torch.tensor([(0.25 + 0.5 * place) * SIDE, 0.5 * SIDE])
        centers = middle + jitter * torch.tensor([1.2, 5.0])
        centers = torch.where(beside[:, None], centers, centers.flip(1))  # (n, 2), x and y
        ink.append(_ink([scene[2 * place] for scene in chosen], centers, generator))
    where = torch.stack([patches(layer, PATCH).sum(-1) > 0.5 for layer in ink], dim=1)
    return Drawings(noisy(torch.maximum(*ink), 0.05, generator), chosen, where)
