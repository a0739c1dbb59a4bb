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
    # one complex number of length 1 per pair: cos + i sin
    log_omega = -math.log(base) * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * log_omega.exp()
    hands = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(hands).flip(-1).flatten(-2).float()


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    # a cosine is a sine a quarter turn ahead
    dim = torch.arange(d_model, dtype=torch.double)
    even = dim - dim % 2
    angle = torch.arange(n_positions, dtype=torch.double)[:, None] * base ** (-even / d_model)
    return torch.sin(angle + (dim % 2) * math.pi / 2).to(torch.float32)


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


@wrong("rotation_between", "unusual", "a reflection of each hand, which also leads to `after`")
def _(before, after):
    (s, c), (s2, c2) = before.view(-1, 2).T, after.view(-1, 2).T
    double = torch.atan2(s, c) + torch.atan2(s2, c2)  # twice the angle of the mirror
    sine, cosine = double.sin(), double.cos()
    return torch.block_diag(*torch.stack([-cosine, sine, sine, cosine], -1).view(-1, 2, 2))


@wrong("rotation_between", "unusual", "solved by least squares, without asking for a rotation")
def _(before, after):
    return torch.linalg.lstsq(before[None], after[None]).solution


@right("rotation_between")
def _(before, after):
    """Two equations for two unknowns, solved hand by hand."""
    R = torch.zeros(len(before), len(before), dtype=before.dtype)
    for i in range(0, len(before), 2):
        s, c = before[i : i + 2]
        C, S = torch.linalg.solve(torch.stack([s, c, c, -s]).view(2, 2), after[i : i + 2])
        R[i : i + 2, i : i + 2] = torch.stack([C, -S, S, C]).view(2, 2)
    return R
