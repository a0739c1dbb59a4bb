"""Other right ways of writing lesson 13's exercises."""

import torch
import torch.nn.functional as F

from transformer_lesson.exercises.mistakes.modern import angles, gated, rms, turned


def _complex(x, positions, base=10000.0):
    half = x.size(-1) // 2
    pairs = torch.complex(x[..., :half], x[..., half:])
    frequency = base ** (-torch.arange(half) / half)
    angle = positions[:, None] * frequency
    rotated = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([rotated.real, rotated.imag], dim=-1)


def _expanded(x, n_groups):
    batch, heads, n, d_head = x.shape
    return x[:, :, None].expand(batch, heads, n_groups, n, d_head).reshape(batch, -1, n, d_head)


MODERN_RIGHT = {
    "rms_norm": [
        rms,
        lambda x, gamma, e: F.rms_norm(x, gamma.shape, gamma, e),
        lambda x, gamma, e: rms(x.double(), gamma.double(), e),
    ],
    "apply_rotary": [
        lambda x, p, base=10000.0: turned(x, angles(x, p, base)),
        _complex,
    ],
    "swiglu": [
        gated,
        lambda x, W_gate, W_up, W_down: gated(
            x, W_gate, W_up, W_down, activation=lambda z: z / (1 + (-z).exp())
        ),
    ],
    "repeat_kv": [
        _expanded,
        lambda x, n_groups: torch.stack([x] * n_groups, dim=2).flatten(1, 2),
        lambda x, n_groups: x[:, torch.arange(x.size(1)).repeat_interleave(n_groups)],
    ],
}
