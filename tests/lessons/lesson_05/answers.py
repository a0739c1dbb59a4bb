"""What learners might write for the exercises of lesson 05."""

import torch

from tests.exercises.answers import right, wrong


# The same formula by algebra; what cancels in float32 is rounding, of which the text says nothing.
@right("layer_norm")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    mean_square = (x * x).mean(dim=-1, keepdim=True)
    var = mean_square - mean * mean
    return (x - mean) / torch.sqrt(var + epsilon) * gamma + beta


@wrong(
    "layer_norm",
    "unusual",
    "a token of equal numbers comes back as it was, not as beta",
)
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True, unbiased=False)
    normed = (x - mean) / torch.sqrt(var + epsilon) * gamma + beta
    return torch.where(var == 0, x, normed)


@wrong(
    "residual_branch",
    "unusual",
    "detaches x, so no gradient takes the straight way down",
)
def _(x, sublayer, norm):
    skip = x.detach()
    return norm(skip + sublayer(x))
