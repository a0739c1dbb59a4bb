"""Heads whose matrices are written down and not trained: what attention can do, shown by doing it.

Short, because one matrix is enough: a step along the text is a rotation of the position.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def look_back_head(
    d_model: int, steps: int, base: float = 10000.0
) -> Float[Tensor, "d_model d_model"]:
    """Return W_Q of a head that looks `steps` tokens back, where W_K is the identity.

    It turns the sinusoidal encoding of each position into that of the position `steps` before,
    PE(pos) W_Q = PE(pos - steps), whatever the position: pair i by the angle
    steps / base^(2i / d_model). So the query of a token is the key of the one that it looks for.

    Args:
        d_model: numbers of an encoding, even.
        steps: how many tokens back; 0 is the token itself, and below 0 it looks ahead.
        base: of the encoding.

    Source: "Attention Is All You Need" (2017), section 3.5: PE(pos + k) is a linear function of
        PE(pos).
    """
    even = torch.arange(0, d_model, 2)  # columns of the sines; the cosines stand behind them
    angle = steps / base ** (even.double() / d_model)  # (d_model / 2,)
    W_Q = torch.zeros(d_model, d_model, dtype=torch.float64)
    W_Q[even, even] = W_Q[even + 1, even + 1] = angle.cos()
    W_Q[even, even + 1] = angle.sin()  # what a sine gives to the cosine beside it
    W_Q[even + 1, even] = -angle.sin()  # and a cosine to the sine
    return W_Q.float()
