"""Twelve numbers split into heads: the right way, and the way that mixes up tokens."""

from math import prod

import ipywidgets
import torch

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import TINTS, Canvas
from transformer_lesson.figures.plots import COLORS

SIZES = [(3, 4, 2), (2, 6, 2), (2, 6, 3), (4, 3, 3), (6, 2, 2)]
"""Every way to share out twelve numbers that is worth a look, as (tokens, d_model, n_heads)."""

CELL = (58, 42)


class HeadSplitExplorer(Explorable):
    """Compare `view(heads, n, d_head)` with `view(n, heads, d_head).transpose(0, 1)`.

    Args:
        sizes: (tokens, d_model, n_heads), one of `SIZES`.
        transposed: whether the split is the right one.
    """

    still_values = {}

    def __init__(self, sizes: tuple[int, int, int] = SIZES[0], transposed: bool = False):
        options = [(f"{n} tokens × {d}, {h} heads", (n, d, h)) for n, d, h in SIZES]
        ways = [("view alone", False), ("view, then transpose", True)]
        super().__init__(
            {
                "sizes": ipywidgets.ToggleButtons(
                    options=options, value=sizes, description="sizes"
                ),
                "transposed": ipywidgets.ToggleButtons(
                    options=ways, value=transposed, description="split"
                ),
            }
        )

    def render(self) -> Rendering:
        return render_head_split(**self.values)


def render_head_split(sizes: tuple[int, int, int], transposed: bool) -> Rendering:
    """Draw where each number of x goes, and which of them arrive in another token's row.

    Args:
        sizes: (tokens, d_model, n_heads), twelve numbers in all.
        transposed: the right split, or `view` alone.
    """
    n, d_model, n_heads = sizes
    d_head = d_model // n_heads
    x = torch.arange(prod(sizes[:2])).view(n, d_model)  # (n, d_model)
    if transposed:
        heads = x.view(n, n_heads, d_head).transpose(0, 1)  # (head, n, d_head)
        code = f"x.view({n}, {n_heads}, {d_head}).transpose(0, 1)"
    else:
        heads = x.view(n_heads, n, d_head)  # (head, n, d_head), but rows are no tokens
        code = f"x.view({n_heads}, {n}, {d_head})"
    seen = [sorted({int(number) // d_model for number in head.flatten()}) for head in heads]
    strays = [
        (head, row, column)
        for head, row, column in torch.cartesian_prod(*map(torch.arange, heads.shape)).tolist()
        if heads[head, row, column] // d_model != row
    ]
    title = _claim(seen, n)
    text = (
        f"{title}. {code}: {len(strays)} of the 12 numbers stand in the row of another token. "
        + " ".join(
            f"Head {h}: {'; '.join(', '.join(map(str, row)) for row in head.tolist())}."
            for h, head in enumerate(heads)
        )
    )
    return Rendering(_draw(title, code, x, heads, strays), text)


def _claim(seen: list[list[int]], n: int) -> str:
    """Say which tokens each head sees."""
    if all(len(tokens) == n for tokens in seen):
        return f"Every head gets all {n} tokens, each token in its own row"
    parts = [
        f"head {head} only token{'s' * (len(tokens) > 1)} {', '.join(map(str, tokens))}"
        for head, tokens in enumerate(seen)
    ]
    return f"No head gets every token: {'; '.join(parts)}"


def _draw(title, code, x, heads, strays) -> bytes:
    (n, d_model), (n_heads, _, d_head) = x.shape, heads.shape
    width, height = CELL
    left, top = 80, 84
    right = left + d_model * width + 80
    end = right + d_model * width + 24 * n_heads
    canvas = Canvas(title, max(800, end), top + n * height + 36)
    canvas.text(left, 46, f"x: ({n}, {d_model})", anchor="lm")
    canvas.text(right, 46, f"{code}: {tuple(heads.shape)}", anchor="lm")
    for token in range(n):
        canvas.text(left - 8, top + (token + 0.5) * height, f"token {token}", anchor="rm")
        canvas.text(right - 8, top + (token + 0.5) * height, f"row {token}", anchor="rm")
        for dimension in range(d_model):
            _cell(canvas, left + dimension * width, top + token * height, x[token, dimension], x)
    for head in range(n_heads):
        start = right + head * (d_head * width + 24)
        canvas.text(start + d_head * width / 2, top - 14, f"head {head}")
        for row in range(n):
            for column in range(d_head):
                place = start + column * width, top + row * height
                _cell(canvas, *place, heads[head, row, column], x)
                if (head, row, column) in strays:
                    canvas.box(*place, width, height, edge=COLORS[1], line=3)
                    canvas.cross(place[0] + width - 20, place[1] + 2, 18, 18, COLORS[1])
    if strays:
        note = "cross: this number belongs to another token than its row"
        canvas.text(left, top + n * height + 18, note, 11, COLORS[1], "lm")
    return canvas.png()


def _cell(canvas: Canvas, x, y, number: torch.Tensor, block: torch.Tensor) -> None:
    """Draw one number with the token (also its color) and the dimension that it comes from."""
    token, dimension = divmod(int(number), block.shape[1])
    canvas.box(x, y, *CELL, fill=TINTS[token])
    canvas.text(x + CELL[0] / 2, y + 15, str(int(number)), 15)
    canvas.text(x + CELL[0] / 2, y + 32, f"tok {token} dim {dimension}", 9)
