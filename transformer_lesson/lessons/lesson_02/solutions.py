"""Lesson 02: vectors that know their position."""

import math

import torch


def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    """Return a sine and a cosine of position / base^(2i / d_model), side by side."""
    pos = torch.arange(n_positions)[:, None]  # (n_positions, 1)
    two_i = torch.arange(0, d_model, 2)  # (d_model / 2,)
    angle = pos / base ** (two_i / d_model)  # (n_positions, d_model / 2)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2], PE[:, 1::2] = angle.sin(), angle.cos()
    return PE


def shift_matrix(k, d_model, base=10000.0):
    """Return one rotation for each pair of dimensions, along the diagonal."""
    R = torch.zeros(d_model, d_model)
    for two_i in range(0, d_model, 2):
        angle = k / base ** (two_i / d_model)
        sin, cos = math.sin(angle), math.cos(angle)
        R[two_i : two_i + 2, two_i : two_i + 2] = torch.tensor([[cos, -sin], [sin, cos]])
    return R
