"""What learners might write for the exercises of lesson 10."""

import math
from statistics import fmean

import torch

from tests.exercises.answers import right


@right("bits_per_character")  # a number in a tensor is a number, as in all exercises
def _(loss_in_nats, n_tokens, n_characters):
    loss = torch.tensor(loss_in_nats, dtype=torch.float64)
    return loss / torch.log(torch.tensor(2.0, dtype=torch.float64)) * n_tokens / n_characters


@right("bits_per_character")  # it overflows above 709 nats a token; guessing costs ln(vocab_size)
def _(loss_in_nats, n_tokens, n_characters):
    perplexity = math.exp(loss_in_nats)
    return math.log2(perplexity) * n_tokens / n_characters


def _straight(x, y):
    """Slope and intercept of the line of least squares."""
    x_mean, y_mean = fmean(x), fmean(y)
    slope = sum((p - x_mean) * (q - y_mean) for p, q in zip(x, y, strict=True)) / sum(
        (p - x_mean) ** 2 for p in x
    )
    return slope, y_mean - slope * x_mean


@right("fit_power_law")  # a list of tensors is three numbers, too
def _(sizes, losses, floors):
    def fit(floor):
        slope, height = _straight(
            [math.log10(n) for n in sizes], [math.log10(q - floor) for q in losses]
        )
        error = sum(
            (floor + 10**height * n**slope - q) ** 2 for n, q in zip(sizes, losses, strict=True)
        )
        return error, [torch.tensor(v, dtype=torch.float64) for v in (floor, 10**height, -slope)]

    return min(map(fit, floors), key=lambda pair: pair[0])[1]
