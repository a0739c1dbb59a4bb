"""What learners might write for the exercises of lesson 05."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong


@wrong("feed_forward", "unusual", "dropout with nothing that switches it off")
def _(x, W_1, b_1, W_2, b_2):
    dropout = nn.Dropout(0.1)
    return dropout((x @ W_1 + b_1).relu()) @ W_2 + b_2


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    # one hidden number after the other adds its row of W_2
    out = b_2.expand(x.shape).double()
    for j in range(W_1.size(1)):
        fires = ((x.double() * W_1[:, j]).sum(dim=-1, keepdim=True) + b_1[j]).clamp(min=0)
        out = out + fires * W_2[j]
    return out.to(x.dtype)


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    flat = x.reshape(-1, x.shape[-1])
    rows = [torch.maximum(t @ W_1 + b_1, torch.zeros_like(b_1)) @ W_2 + b_2 for t in flat]
    return torch.stack(rows).reshape(x.shape)


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


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    d_model = x.size(-1)
    rows = []
    for token in x.reshape(-1, d_model):
        mu = sum(token) / d_model
        sigma_squared = sum((number - mu) ** 2 for number in token) / d_model
        rows.append((token - mu) / (sigma_squared + epsilon) ** 0.5 * gamma + beta)
    return torch.stack(rows).reshape(x.shape)


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    # centering is a product with I - 1/d, and the root of a mean square is a length / sqrt(d)
    d = x.size(-1)
    centered = x.double() @ (torch.eye(d, dtype=torch.float64) - 1 / d)
    variance = torch.einsum("...d,...d->...", centered, centered).unsqueeze(-1) / d
    return (centered / (variance + epsilon).sqrt()).to(x.dtype) * gamma + beta


@wrong("residual_branch", "unusual", "dropout that is always on")
def _(x, sublayer, norm):
    return norm(x + F.dropout(sublayer(x), p=0.1))


@wrong(
    "residual_branch",
    "unusual",
    "detaches x, so no gradient takes the straight way down",
)
def _(x, sublayer, norm):
    skip = x.detach()
    return norm(skip + sublayer(x))


@right("residual_branch")
def _(x, sublayer, norm):
    return norm(torch.stack([sublayer(x), x]).sum(dim=0))
