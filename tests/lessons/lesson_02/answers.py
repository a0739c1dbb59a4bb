"""What learners might write for the exercises of lesson 02."""

import math

import torch

from tests.exercises.answers import right, wrong


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "positions in bfloat16, rounded from 257 on (n_positions = 300)",
)
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions, dtype=torch.bfloat16)[:, None].float()
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2] = (pos * omega).sin()
    PE[:, 1::2] = (pos * omega).cos()
    return PE


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "too few rows for n_positions above 5,000, the tutorial's max_len",
)
def _(n_positions, d_model, base=10000.0):
    max_len = 5000
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(0, max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe[:n_positions, :]


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "OverflowError from d_model = 80 on: base ** 2i before the root",
)
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for i in range(d_model // 2):
        wavelength = (base ** (2 * i)) ** (1 / d_model)
        for pos in range(n_positions):
            PE[pos, 2 * i] = math.sin(pos / wavelength)
            PE[pos, 2 * i + 1] = math.cos(pos / wavelength)
    return PE


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    # walk: every pair is turned by its own angle from one position to the next
    omega = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    cosine, sine = omega.cos(), omega.sin()
    s, c = torch.zeros_like(omega), torch.ones_like(omega)
    rows = []
    for _ in range(n_positions):
        rows.append(torch.stack([s, c], dim=1).flatten())
        s, c = s * cosine + c * sine, c * cosine - s * sine
    return torch.stack(rows).float()


@wrong("rotation_between", "unusual", "solved by least squares, without asking for a rotation")
def _(before, after):
    return torch.linalg.lstsq(before[None], after[None]).solution
