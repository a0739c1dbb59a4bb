"""Layer norm and batch norm on the same block: which numbers share a mean."""

import ipywidgets
import matplotlib
import torch
from jaxtyping import Float
from matplotlib.colors import Normalize, to_hex
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.figures.plots import COLORS, DIVERGING
from transformer_lesson.model.norm import layer_norm

SENTENCES = (("Save", "all", "files"), ("Open", "this", "tab"))
BLOCK = torch.tensor(
    [
        [[0.5, -1.0, 2.0, 0.1], [1.5, 0.3, -0.6, 2.4], [-0.8, 0.9, 0.2, -1.3]],
        [[-1.2, 2.1, 0.7, 0.4], [0.6, -0.5, 1.1, -2.0], [2.2, 1.0, -0.9, 0.3]],
    ]
)  # (batch, token, d_model)
CHANGED = (0, 1)
"""The token that the sliders shift and scale: "all"."""

CELL, ROW, LEFT, TOP, AFTER = 50, 28, 110, 84, 500


class NormExplorer(Explorable):
    """Shift and scale one token, and see which tokens' outputs a norm lets that reach.

    Args:
        norm: "layer" or "batch".
        shift: added to each number of the changed token, -5 to 5.
        scale: factor of each number of the changed token, 0 to 5.
        gamma, beta: factor and summand after normalizing, the same for every dimension.
        epsilon: added to the variance, 1e-8 to 10.
    """

    def __init__(
        self,
        norm: str = "layer",
        shift: float = 2.0,
        scale: float = 1.0,
        gamma: float = 1.0,
        beta: float = 0.0,
        epsilon: float = 1e-5,
    ):
        sliders = {
            "shift": ipywidgets.FloatSlider(shift, min=-5, max=5, step=0.5, description="shift"),
            "scale": ipywidgets.FloatSlider(scale, min=0, max=5, step=0.25, description="scale"),
            "gamma": ipywidgets.FloatSlider(gamma, min=-2, max=2, step=0.25, description="gamma"),
            "beta": ipywidgets.FloatSlider(beta, min=-2, max=2, step=0.25, description="beta"),
            "epsilon": ipywidgets.FloatLogSlider(
                epsilon, min=-8, max=1, step=1, description="epsilon", readout_format=".0e"
            ),
        }
        options = [("layer norm", "layer"), ("batch norm", "batch")]
        choice = ipywidgets.ToggleButtons(options=options, value=norm, description="norm")
        super().__init__({"norm": choice, **sliders})

    def render(self) -> Rendering:
        return render_norm(**self.values)


def batch_norm(
    x: Float[Tensor, "batch n d_model"], gamma: Tensor, beta: Tensor, epsilon: float
) -> Float[Tensor, "batch n d_model"]:
    """gamma · (x − mean) / √(variance + epsilon) + beta, each over every token of the batch.

    Source: Ioffe and Szegedy, "Batch Normalization" (2015), algorithm 1 (training).
    """
    mean = x.mean(dim=(0, 1))  # (d_model,)
    variance = x.var(dim=(0, 1), correction=0)  # (d_model,)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta


NORMS = {"layer": layer_norm, "batch": batch_norm}


def render_norm(
    norm: str, shift: float, scale: float, gamma: float, beta: float, epsilon: float
) -> Rendering:
    """Draw the block before and after a norm, and how far each token's output moved.

    Args:
        norm: "layer" or "batch".
        shift, scale: what happens to the token `CHANGED` before the norm.
        gamma, beta: of the norm, for every dimension.
        epsilon: added to the variance.
    """
    options = torch.full((4,), gamma), torch.full((4,), beta), epsilon
    x = BLOCK.clone()
    x[CHANGED] = x[CHANGED] * scale + shift
    after = NORMS[norm](x, *options)  # (batch, token, d_model)
    moved = (after - NORMS[norm](BLOCK, *options)).abs().amax(dim=-1).flatten()  # (batch · token,)
    token = SENTENCES[CHANGED[0]][CHANGED[1]]
    index = CHANGED[0] * len(SENTENCES[0]) + CHANGED[1]
    others = moved.clone()
    others[index] = 0
    title = _claim(norm, token, (scale, shift) != (1, 0), float(others.max()))
    axis = -1 if norm == "layer" else (0, 1)
    mean, variance = x.mean(dim=axis).flatten(), x.var(dim=axis, correction=0).flatten()
    shared = "token" if norm == "layer" else "dimension"
    numbers = ", ".join(f"{m:.2f} and {v.sqrt():.2f}" for m, v in zip(mean, variance, strict=True))
    settings = f"gamma {gamma:g}, beta {beta:g}, epsilon {epsilon:.0e}"
    text = (
        f"{title}. “{token}” is its old numbers × {scale:g} + {shift:g}; its output moves by "
        f"{moved[index]:.2f}. Mean and deviation of each {shared}: {numbers}. "
        f"{settings}."
    )
    return Rendering(_draw(title, norm, settings, x, after, moved, (mean, variance), index), text)


def _claim(norm: str, token: str, changed: bool, farthest: float) -> str:
    if not changed:
        of = "its own" if norm == "layer" else "all tokens'"
        return f"{norm.capitalize()} norm: each token is measured against {of} mean and deviation"
    reach = f"other tokens' outputs by up to {farthest:.2f}"
    if farthest < 0.005:
        reach = "no other token's output"
    return f"{norm.capitalize()} norm: changing “{token}” moves {reach}"


def _draw(title, norm, settings, x, after, moved, statistics, index) -> bytes:
    tokens = [token for sentence in SENTENCES for token in sentence]
    d_model, n = x.shape[-1], len(tokens)
    canvas = Canvas(title, 840, TOP + n * ROW + 84)
    canvas.text(LEFT, 46, "before; a frame: these share mean and deviation", anchor="lm")
    canvas.text(AFTER, 46, f"after; {settings}", anchor="lm")
    canvas.text(AFTER + d_model * CELL + 30, TOP - 12, "moved by", 11, anchor="lm")
    for row, token in enumerate(tokens):
        name, color = (f"→ {token}", COLORS[1]) if row == index else (token, "black")
        y = TOP + (row + 0.5) * ROW
        canvas.text(LEFT - 10, y, name, color=color, anchor="rm")
        canvas.text(AFTER - 10, y, name, color=color, anchor="rm")
        canvas.text(AFTER + d_model * CELL + 40, y, f"{moved[row]:.2f}", anchor="lm")
    _values(canvas, LEFT, x.flatten(0, 1))
    _values(canvas, AFTER, after.flatten(0, 1))
    _statistics(canvas, norm, n, d_model, *statistics)
    note = "→ the token that shift and scale change; moved by: against shift 0 and scale 1. "
    note += "Rows: tokens of two sentences."
    canvas.text(14, TOP + n * ROW + 66, note, 11, anchor="lm")
    return canvas.png()


def _statistics(canvas: Canvas, norm: str, n: int, d_model: int, mean, variance) -> None:
    """Frame the numbers that share a mean and a deviation, and write both beside the frame."""
    bottom = TOP + n * ROW
    for i, (m, v) in enumerate(zip(mean, variance, strict=True)):
        if norm == "layer":
            canvas.box(LEFT, TOP + i * ROW, d_model * CELL, ROW, edge="black", line=3)
            words = f"mean {m:.2f}, dev. {v.sqrt():.2f}"
            y = TOP + (i + 0.5) * ROW
            canvas.text(LEFT + d_model * CELL + 8, y, words, 10, anchor="lm")
        else:
            canvas.box(LEFT + i * CELL, TOP, CELL, n * ROW, edge="black", line=3)
            canvas.text(LEFT + (i + 0.5) * CELL, bottom + 14, f"{m:.2f}", 10)
            canvas.text(LEFT + (i + 0.5) * CELL, bottom + 32, f"{v.sqrt():.2f}", 10)
    if norm == "batch":
        canvas.text(LEFT - 10, bottom + 14, "mean", 10, anchor="rm")
        canvas.text(LEFT - 10, bottom + 32, "deviation", 10, anchor="rm")


def _values(canvas: Canvas, left: int, block: Float[Tensor, "token d_model"]) -> None:
    """Draw numbers in colored cells, orange below zero and purple above."""
    scale, colors = Normalize(-8, 8), matplotlib.colormaps[DIVERGING]
    for row, values in enumerate(block.tolist()):
        for dimension, value in enumerate(values):
            x, y = left + dimension * CELL, TOP + row * ROW
            canvas.box(x, y, CELL, ROW, fill=to_hex(colors(scale(value))))
            ink = "white" if abs(value) > 5 else "black"
            canvas.text(x + CELL / 2, y + ROW / 2, f"{value:.2f}", 11, ink)
    for dimension in range(block.shape[1]):
        canvas.text(left + (dimension + 0.5) * CELL, TOP - 12, f"dim {dimension}", 10)
