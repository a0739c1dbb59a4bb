"""A small vision transformer: the encoder block of lesson 06, unchanged, on pieces of pictures.

The digits are drawn here, from strokes that shift, lean, grow and tremble at random, because none
of the course's packages includes any.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.model.blocks import EncoderBlock
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import record
from transformer_lesson.model.norm import make_norm
from transformer_lesson.training.interrupt import load_whole

SIDE, PATCH, CLASSES = 16, 4, 10  # pixels of a picture and of a patch; digits
BATCH = 64
STROKES: tuple[tuple[str, ...], ...] = (
    ("42 31 22 14 15 26 37 47 56 65 54 63 52 42",),
    ("33 51 57",),
    ("23 32 42 53 54 27 57",),
    ("22 31 41 52 53 44 34", "44 54 55 46 37 27"),
    ("47 41 25 55",),
    ("52 22 24 44 55 56 47 27",),
    ("51 32 24 26 37 47 56 55 44 25",),
    ("21 51 33 37",),
    ("34 23 22 31 41 52 53 44 34 25 26 37 47 56 55 44",),
    ("53 42 32 23 24 35 45 53 55 46 37",),
)
"""The lines of each digit: points (x, y) on a grid of 0 to 8, y growing downwards."""


class Digits(NamedTuple):
    """Pictures and what they show.

    Args:
        pictures: from 0 (paper) to 1 (ink), shape (n, 16, 16).
        labels: digits, shape (n,).
    """

    pictures: Float[Tensor, "n 16 16"]
    labels: Int64[Tensor, " n"]


def _segments(digit: int) -> Float[Tensor, "segments 2 2"]:
    """Return the straight lines of a digit: from where to where, in x and y."""
    lines = []
    for stroke in STROKES[digit]:
        points = [[int(x), int(y)] for x, y in stroke.split()]
        lines += zip(points, points[1:], strict=False)
    return torch.tensor(lines, dtype=torch.float32)


def draw_digits(n: int, seed: int) -> Digits:
    """Draw n digits, each with its own place, slant, size, rotation, pen and tremor.

    A pixel is darker the further it is within the pen's width of a line.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (n,), generator=generator)
    pictures = torch.zeros(n, SIDE, SIDE)
    for digit in range(CLASSES):
        where = (labels == digit).nonzero()[:, 0]
        pictures[where] = _drawn(_segments(digit), len(where), generator)
    return Digits(pictures, labels)


def _drawn(lines: Tensor, n: int, generator: torch.Generator) -> Float[Tensor, "n 16 16"]:
    def between(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(n, *shape, generator=generator)

    turn, slant, width, height = between(-0.2, 0.2), between(-0.3, 0.3), *between(0.8, 1.2, 2).T
    hand = torch.stack([turn.cos() * width, slant - turn.sin(), turn.sin(), turn.cos() * height])
    hand = hand.T.reshape(n, 1, 2, 2)  # what the hand does to x and y
    tremor = between(-0.25, 0.25, *lines.shape)
    points = (lines - 4 + tremor) @ hand.mT + 4 + between(-1.0, 1.0, 1, 1, 2)
    ink = strokes(points * SIDE / 8, between(0.7, 1.4, 1), SIDE)
    return noisy(ink, 0.1, generator)


def strokes(
    lines: Float[Tensor, "n segments 2 2"], pen: Float[Tensor, "n 1"], side: int
) -> Float[Tensor, "n side side"]:
    """Draw straight lines: a pixel is darker the further it is within the pen's width of one.

    Args:
        lines: from where to where, in x and y, in pixels.
        pen: half the width of each picture's lines, in pixels.
        side: pixels of a picture's side.
    """
    begin, end = lines[:, :, None].unbind(dim=-2)  # (n, segments, 1, 2)
    axis = torch.arange(side) + 0.5
    pixels = torch.cartesian_prod(axis, axis).flip(1)  # (side * side, 2), x and y
    along = end - begin
    share = ((pixels - begin) * along).sum(-1) / along.square().sum(-1).clamp(min=1e-6)
    nearest = begin + share.clamp(0, 1)[..., None] * along  # (n, segments, side * side, 2)
    distance = (pixels - nearest).norm(dim=-1).amin(dim=1)  # (n, side * side)
    return (pen - distance + 0.5).clamp(0, 1).reshape(-1, side, side)


def noisy(pictures: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Return pictures with noise of this standard deviation, still from 0 to 1."""
    grains = noise * torch.randn(pictures.shape, generator=generator)
    return (pictures + grains).clamp(0, 1)


def patches(pictures: Float[Tensor, "n side side"], size: int = 4) -> Tensor:
    """Cut pictures into squares, row by row: each becomes a token of size * size numbers.

    Returns:
        Shape (n, squares, size * size).

    Raises:
        ValueError: the pictures' side is no multiple of the size.

    Source: Dosovitskiy and others, "An Image is Worth 16x16 Words" (2020), section 3.1.
    """
    n, side, _ = pictures.shape
    if side % size:
        raise ValueError(f"size is {size}, but it must divide the pictures' side, {side}.")
    squares = pictures.reshape(n, side // size, size, side // size, size)
    return squares.transpose(2, 3).reshape(n, (side // size) ** 2, size * size)


class VisionTransformer(nn.Module):
    """Patches in, digits out; between them the course's encoder blocks.

    A learned class token precedes the patches, and its final vector is classified.

    Args:
        d_model, n_heads, n_layers: sizes, as in `ModelConfig`.
        seed: of the weights.
        cut: what cuts pictures, as `patches` does.

    Source: Dosovitskiy and others, "An Image is Worth 16x16 Words" (2020), equations 1 to 4.
    Differs: smaller throughout; one linear layer classifies, as in their fine-tuning.
    """

    def __init__(
        self,
        d_model: int = 48,
        n_heads: int = 4,
        n_layers: int = 2,
        seed: int = 0,
        cut: Callable = patches,
    ):
        super().__init__()
        self.cut = cut
        torch.manual_seed(seed)
        n_tokens = 1 + (SIDE // PATCH) ** 2
        sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers}
        self.config = ModelConfig(CLASSES, **sizes, d_ff=4 * d_model, max_len=n_tokens, dropout=0.0)
        self.embedding = nn.Linear(PATCH * PATCH, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(n_tokens, d_model))
        self.encoder = nn.ModuleList(EncoderBlock(self.config) for _ in range(n_layers))
        self.norm = make_norm(self.config)
        self.classifier = nn.Linear(d_model, CLASSES)

    def forward(self, pictures: Float[Tensor, "n 16 16"]) -> Float[Tensor, "n 10"]:
        """Return logits, one for each digit."""
        x = self.embedding(self.cut(pictures, PATCH))  # (n, patches, d_model)
        first = self.class_token.expand(len(x), 1, -1)
        x = torch.cat([first, x], dim=1) + self.positions  # (n, 1 + patches, d_model)
        for block in self.encoder:
            x = block(x)
        return self.classifier(self.norm(x[:, 0]))


def train(model: nn.Module, digits: Digits, steps: int = 800, seed: int = 0) -> Iterator[float]:
    """Train a model on random batches, and yield each step's loss."""
    load_whole("torch._dynamo")  # for torch.optim; an interrupt could leave half of it
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 1 - step / steps)
    )
    for _ in range(steps):
        chosen = torch.randint(len(digits.labels), (BATCH,), generator=generator)
        loss = F.cross_entropy(model(digits.pictures[chosen]), digits.labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()


@torch.no_grad()
def share_right(model: nn.Module, digits: Digits) -> float:
    """Return the share of digits that a model classifies right, from 0 to 1."""
    chosen = model(digits.pictures).argmax(dim=-1)
    return (chosen == digits.labels).double().mean().item()


@torch.no_grad()
def looks_at(
    model: VisionTransformer, picture: Float[Tensor, "side side"], block: int = -1
) -> Float[Tensor, "heads rows columns"]:
    """Return how much the class token attends to each patch, per head of a block.

    Its attention to itself is left out, so a head's patches sum to at most 1.
    """
    name = f"encoder.{range(len(model.encoder))[block]}.self_attention.weights"
    with record(model) as recorded:
        model(picture[None])
    weights = recorded[name][0, :, 0, 1:]  # (heads, patches)
    return weights.reshape(len(weights), SIDE // PATCH, SIDE // PATCH)


def linear_rival(seed: int = 0) -> nn.Module:
    """Return a linear layer on single pixels, the baseline without any interaction of parts."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, CLASSES))
