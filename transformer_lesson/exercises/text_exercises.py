"""Lesson 02: vectors that know their position."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


def _sinusoidal_inputs(draw: Draw) -> tuple:
    draw.sizes["d_model"] = 2 * draw.size("pair")
    base = 10000.0 if draw.number % 2 == 0 else 100.0
    return draw.size("n_positions"), draw.sizes["d_model"], base


def _starts_at_zero(answer, inputs: tuple, encoding: Tensor) -> str | None:
    first = torch.tensor([0.0, 1.0]).repeat(encoding.size(1) // 2)
    if torch.allclose(encoding[0].float(), first, atol=1e-5):
        return None
    return (
        "Row 0 must be 0, 1, 0, 1, ...: the sine and the cosine of angle 0, in turn.\n"
        "Do your positions count from 0? Do sines stand at even and cosines at odd columns?"
    )


TEXT_EXERCISES = (
    Exercise(
        name="sinusoidal_encoding",
        reference="transformer_lesson.model.positions:sinusoidal_encoding",
        make_inputs=_sinusoidal_inputs,
        returns={"encoding": "n_positions d_model"},
        hints=(
            "Dimensions 2i and 2i + 1 share one angle: position / base^(2i / d_model).",
            "`torch.arange(n_positions)[:, None]` against a row of frequencies gives all angles "
            "at once, shape (n_positions, d_model / 2).",
            "With 2i = `torch.arange(0, d_model, 2)`, the angle is `position / base ** "
            "(two_i / d_model)`. Fill `encoding[:, 0::2]` with its sine and `encoding[:, 1::2]` "
            "with its cosine.",
        ),
        invariants=(_starts_at_zero,),
    ),
)
