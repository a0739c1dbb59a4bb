"""What learners might write for the exercises of lesson 10."""

import math
from statistics import fmean

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.blocks import residual_branch_pre
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.positions import sinusoidal_encoding


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    nats_per_bit = torch.tensor(2.0, dtype=torch.float64).log()
    return (loss_in_nats / nats_per_bit * n_tokens / n_characters).item()


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    # a fair choice among 2 costs ln 2 nats; how many such choices is one character worth?
    tokens_per_character = n_tokens / n_characters
    nats_per_character = loss_in_nats * tokens_per_character
    one_bit = -math.log(0.5)
    return nats_per_character / one_bit


@right("bits_per_character")  # a number in a tensor is a number, as in all exercises
def _(loss_in_nats, n_tokens, n_characters):
    loss = torch.tensor(loss_in_nats, dtype=torch.float64)
    return loss / torch.log(torch.tensor(2.0, dtype=torch.float64)) * n_tokens / n_characters


@right("bits_per_character")  # it overflows above 709 nats a token; guessing costs ln(vocab_size)
def _(loss_in_nats, n_tokens, n_characters):
    perplexity = math.exp(loss_in_nats)
    return math.log2(perplexity) * n_tokens / n_characters


@right("gpt_forward")
def _(ids, weights):
    d_model = weights.table.size(1)
    x = F.embedding(ids, weights.table) * d_model**0.5
    x = x + sinusoidal_encoding(ids.size(1), d_model)
    mask = torch.ones(ids.size(1), ids.size(1)).tril().bool()

    def attend(h, W):
        return multi_head_attention(h, *W, weights.n_heads, mask)

    def think(h, W):
        return feed_forward(h, *W)

    for block in weights.blocks:
        parts = ((attend, block.self_attention), (think, block.feed_forward))
        for (f, W), norm in zip(parts, block.norms, strict=True):
            x = residual_branch_pre(
                x,
                lambda h, f=f, W=W: f(h, W),
                lambda h, pair=norm: F.layer_norm(h, (d_model,), *pair),
            )
    return F.layer_norm(x, (d_model,), *weights.last_norm) @ weights.projection


@right("write_on")
def _(next_logits, ids, draws, length, temperature=1.0):
    text = ids.copy()
    for number in draws:
        P = torch.softmax(next_logits(text[-length:]) / temperature, dim=0)
        ends = torch.cumsum(P, dim=0).tolist()
        text += [next(token for token, end in enumerate(ends) if number < end)]
    return text


@wrong("write_on", "unusual", "draws numbers of its own")
def _(next_logits, ids, draws, length, temperature=1.0):
    ids = list(ids)
    for _ in draws:
        P = (next_logits(ids[-length:]) / temperature).softmax(dim=-1)
        ids.append(int(torch.multinomial(P, 1)))
    return ids


def _straight(x, y):
    """Slope and intercept of the line of least squares."""
    x_mean, y_mean = fmean(x), fmean(y)
    slope = sum((p - x_mean) * (q - y_mean) for p, q in zip(x, y, strict=True)) / sum(
        (p - x_mean) ** 2 for p in x
    )
    return slope, y_mean - slope * x_mean


@right("fit_power_law")  # in matrices, in base 2, and the floors all at once
def _(sizes, losses, floors):
    n, y = (torch.tensor(one, dtype=torch.float64) for one in (sizes, losses))
    F = torch.tensor(floors, dtype=torch.float64)
    X = torch.stack([torch.ones_like(n), n.log2()], dim=1)
    c = torch.linalg.lstsq(X, (y[:, None] - F).log2()).solution  # (2, floors)
    i = ((F + 2 ** (X @ c) - y[:, None]) ** 2).sum(0).argmin()
    return F[i].item(), 2 ** c[0, i].item(), -c[1, i].item()


@right("fit_power_law")  # a root of a mean is least where the sum is
def _(sizes, losses, floors):
    best = (math.inf, 0.0, 0.0, 0.0)
    for floor in sorted(floors):
        x = [-math.log(n) for n in sizes]
        slope, height = _straight(x, [math.log(loss - floor) for loss in losses])
        rmse = (
            fmean(
                (floor + math.exp(height + slope * p) - q) ** 2
                for p, q in zip(x, losses, strict=True)
            )
            ** 0.5
        )
        best = min(best, (rmse, floor, math.exp(height), slope))
    return best[1:]


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
