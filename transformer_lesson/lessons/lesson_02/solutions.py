"""Lesson 02: vectors that know their position."""

import torch


def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    """Return a sine and a cosine of position / base^(2i / d_model), side by side."""
    pos = torch.arange(n_positions)[:, None]  # (n_positions, 1)
    two_i = torch.arange(0, d_model, 2)  # (d_model / 2,)
    angle = pos / base ** (two_i / d_model)  # (n_positions, d_model / 2)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2], PE[:, 1::2] = angle.sin(), angle.cos()
    return PE


def rotation_between(before, after):
    """Return one rotation for each pair of numbers, along the diagonal."""
    R = torch.zeros(len(before), len(before), dtype=before.dtype)
    for i in range(0, len(before), 2):
        (s, c), (s_after, c_after) = before[i : i + 2], after[i : i + 2]
        C, S = s * s_after + c * c_after, c * s_after - s * c_after
        R[i : i + 2, i : i + 2] = torch.tensor([[C, -S], [S, C]])
    return R
