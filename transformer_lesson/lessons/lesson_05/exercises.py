"""Lesson 05: the feed-forward network, the norm, and the sum around a sub-layer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model import blocks

LEADING = ("batch n", "", "batch", "batch n", "batch head n", "batch n", "n")
"""The axes that "..." stands for, draw by draw."""


def _tokens(draw: Draw, wide: bool = False) -> Tensor:
    """Return x: one vector or many, one sentence, one token, doubles stored transposed."""
    if draw.number in (3, 5):
        draw.sizes["batch" if draw.number == 3 else "n"] = 1
    leading = draw.one_of(LEADING)
    if wide:
        random_layers.widen(draw, leading)
    x = draw.normal(f"{leading} d_model")
    return x.double().mT.contiguous().mT if draw.number == 4 else x


@breaks("tokens that are mixed")
def _each_token_by_itself(answer, inputs: tuple, result: Tensor) -> str | None:
    x, *weights = inputs
    tokens = x.flatten(0, -2) if x.ndim > 1 else x[None]
    if len(tokens) == 1:
        return None
    changed = torch.cat([tokens[:1] + 1.0, tokens[1:]]).reshape(x.shape)
    moved = (answer(changed, *weights) - result).abs().reshape(tokens.shape)[1:]
    if moved.max() < 1e-3:
        return None
    return (
        f"One token was changed, and the result of another one moved by {moved.max():.4g}.\n"
        "Each token is processed by itself: which axis mixes them?"
    )


def _feed_forward_inputs(draw: Draw) -> tuple:
    x = _tokens(draw)
    if draw.number in (1, 6):  # two square matrices, or one hidden unit
        draw.sizes["d_ff"] = draw.size("d_model") if draw.number == 1 else 1
    weights = [draw.normal(axes) for axes in ("d_model d_ff", "d_ff", "d_ff d_model", "d_model")]
    return x, *(weight.to(x.dtype) for weight in weights)


@exercise(
    reference="transformer_lesson.model.feed_forward:feed_forward",
    make_inputs=_feed_forward_inputs,
    draws=7,
    returns={"output": "d_model"},
    hints=(
        "Unit u takes the dot product of x with column u of W_1. Which single product takes all "
        "of these dot products at once?",
        "`x @ W_1 + b_1` holds every unit's sum, on the last axis, so batch and n need no loop. "
        "`.relu()` silences what is below 0. Adding up rows of W_2, each times a number, is a "
        "matrix product too.",
        "`hidden = (x @ W_1 + b_1).relu()`. Then multiply by W_2 and add b_2.",
    ),
    invariants=(random_layers.is_deterministic, _each_token_by_itself),
)
def feed_forward(x, W_1, b_1, W_2, b_2):
    """Return max(0, x W_1 + b_1) W_2 + b_2."""
    W_1, W_2 = choose((W_1, W_2), transposed=(W_1.mT, W_2.mT))
    b_1, b_2 = choose((b_1, b_2), biases_swapped=(b_2, b_1))
    rows = choose(
        x,
        input_cut_off=x.relu(),
        viewed=x.view(-1, x.size(-1)).view(x.shape),
        three_axes_unpacked=next(x.view(batch, n, d_model) for batch, n, d_model in [x.shape]),
        three_axes_in_einsum=torch.einsum("bnd->bnd", x),
        viewed_and_left_so=x.view(-1, x.size(-1)),
    )
    wide = rows @ W_1
    shifted = choose(wide + b_1, first_bias_after=wide, no_first_bias=wide)
    hidden = choose(_activation(shifted), first_bias_after=_activation(shifted) + b_1)
    narrow = hidden @ W_2
    output = choose(narrow + b_2, no_second_bias=narrow, activation_too_late=narrow.relu() + b_2)
    output = choose(output, activation_at_the_end=output.relu())
    return choose(output, residual=x + output)


def _activation(z):
    """Return max(0, z), number by number."""
    return choose(
        z.relu(),
        no_activation=z,
        activation_at_the_end=z,
        activation_too_late=z,
        cut_off_from_above=z.clamp(max=0),
        leaky=F.leaky_relu(z),
        leaky_by_a_tenth=F.leaky_relu(z, 0.1),
        at_most_6=F.relu6(z),
        squared=z.relu().square(),
        sizes=z.abs(),
        gelu=F.gelu(z),
        sigmoid=z.sigmoid(),
        tanh=z.tanh(),
        softmax=z.softmax(-1),
        largest_along_an_axis=z.max(0).values,
        signs=(z > 0).to(z.dtype),
    )


def _layer_norm_inputs(draw: Draw) -> tuple:
    """A large epsilon, where its place shows, and tokens that are small or all zeros."""
    x = _tokens(draw, wide=True)
    if draw.number == 3:
        x *= 0.01  # where even 1e-5 counts
    if draw.number == 4:
        x[0] = 0.0
    gamma, beta = draw.positive("d_model").to(x.dtype), draw.normal("d_model").to(x.dtype)
    return x, gamma, beta, draw.one_of((1e-5, 0.5, 1e-5, 1e-5, 1e-5, 1e-6))


@breaks("a mean that is not 0")
def _mean_zero(answer, inputs: tuple, result: Tensor) -> str | None:
    _, gamma, beta, _ = inputs
    means = ((result - beta) / gamma).mean(dim=-1)
    not_scaled_yet = result.mean(dim=-1).abs().max() < 1e-3  # gamma and beta have not come in yet
    if not_scaled_yet or means.abs().max() < 1e-3:
        return None
    return (
        "Before gamma and beta, each token's own numbers must have mean 0. "
        f"Yours reach a mean of {means.flatten()[means.abs().argmax()]:.4g}.\n"
        "Over which axis do you take the mean, and where do gamma and beta come in?"
    )


@exercise(
    reference="transformer_lesson.model.norm:layer_norm",
    make_inputs=_layer_norm_inputs,
    draws=6,
    returns={"normalized": "d_model"},
    hints=(
        "The first word has the mean 4, so -2 became -1.41: it was divided by 1.41, the root of "
        "2. Is 2 the mean of the squared distances 4, 0, 0, 4, or their sum divided by 3? And did "
        "-1.41 change when the second word was multiplied by 100?",
        "With epsilon 3, a distance of 1 and a variance of 1 became 0.5. 1 / (1 + 3) is 0.25, "
        "and 1 / √(1 + 3) is 0.5. `keepdim=True` keeps the axis, so that the result broadcasts.",
        "`variance = x.var(dim=-1, keepdim=True, correction=0)`. Add epsilon to it, inside the "
        "root. Multiply the quotient by gamma, and add beta last.",
    ),
    invariants=(_mean_zero, _each_token_by_itself),
)
def layer_norm(x, gamma, beta, epsilon):
    """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta, each token by itself."""
    x = choose(x, scaled_first=x * gamma + beta)
    axis = choose(
        -1,
        over_tokens=1,
        always_axis_2=2,
        over_second_to_last=-2,
        over_both=(1, 2),
        shape_of_last_two=tuple(range(-min(x.ndim, 2), 0)),
        over_batch=(0, 1),
        over_first=0,
        over_all=tuple(range(x.ndim)),
        over_all_but_first=tuple(range(min(1, x.ndim - 1), x.ndim)),
    )
    mean = choose(x.mean(axis, keepdim=True), axis_in_the_wrong_place=x.mean(-1)[:, None])
    deviation = choose(
        _deviation(_variance(x, mean, axis), epsilon),
        length=(x - mean).norm(dim=axis, keepdim=True).clamp(min=epsilon),
    )
    centered = choose(x - mean, mean_kept=x, root_mean_square=x, in_place=x.sub_(mean))
    normalized = centered / deviation
    return _scaled(normalized, gamma, beta)


def _deviation(variance, epsilon):
    """Return sqrt(variance + epsilon)."""
    epsilon = choose(epsilon, epsilon_ignored=0.0)
    return choose(
        (variance + epsilon).sqrt(),
        epsilon_outside=variance.sqrt() + epsilon,
        not_the_root=variance + epsilon,
        square_for_root=(variance + epsilon) ** 2,
        deviation_at_least_epsilon=variance.sqrt().clamp(min=epsilon),
    )


def _variance(x, mean, axis):
    """Return the variance of each token's numbers."""
    variance = x.var(axis, keepdim=True, correction=0)
    count = torch.tensor(x.numel() / variance.numel())  # of numbers in one variance
    return choose(
        variance,
        unbiased=variance * count / (count - 1),
        axis_in_the_wrong_place=x.var(-1, correction=0)[:, None],
        root_mean_square=x.square().mean(axis, keepdim=True),
        mean_taken_off_too_late=x.square().mean(axis, keepdim=True),
        absolute_deviation=(x - mean).abs().mean(axis, keepdim=True).square(),
    )


def _scaled(normalized, gamma, beta):
    """Return normalized * gamma + beta."""
    gamma, beta = choose((gamma, beta), swapped=(beta, gamma))
    scaled = choose(
        normalized * gamma,
        no_gamma=normalized,
        scaled_first=normalized,
        divided_by_gamma=normalized / gamma,
        gamma_plus_1=normalized * (1 + gamma),
    )
    return choose(scaled + beta, scaled_first=scaled, beta_scaled=scaled + beta * gamma)


def _branch_inputs(draw: Draw) -> tuple:
    x = _tokens(draw, wide=True)
    attends = draw.number in (0, 4)  # the others work on each token by itself
    sublayer = (random_layers.attention if attends else random_layers.feed_forward)(draw)
    return x, sublayer, random_layers.norm(draw)


@exercise(
    reference="transformer_lesson.model.blocks:residual_branch",
    make_inputs=_branch_inputs,
    draws=6,
    returns={"output": "d_model"},
    hints=(
        "Write one of the three orders in your cell, run it, then run `how_far`: 0 is the "
        "translator's own way.",
        "Look at the figure of section 4: with its norms, the stream has size 1 after every "
        "sub-layer. Which of the three orders normalizes the stream itself?",
        "The sum is `x + sublayer(x)`, and the norm comes last.",
    ),
    invariants=(
        random_layers.is_deterministic,
        random_layers.callbacks_get_the_right_tensors(blocks.residual_branch, "sublayer norm"),
        random_layers.gradients_are_kept(blocks.residual_branch),
    ),
)
def residual_branch(x, sublayer, norm):
    """Post-norm: return norm(x + sublayer(x))."""
    x = choose(x, sublayer_first=sublayer(x))
    read = choose(x, pre_norm=norm(x), norm_on_both_sides=norm(x))
    written = choose(
        sublayer(read),
        one_by_one=torch.stack([sublayer(sentence) for sentence in read]),
        norm_before_sum=norm(sublayer(read)),
        sublayer_twice=sublayer(sublayer(read)),
    )
    carried = choose(
        x, carried_normalized=norm(x), no_residual=torch.zeros_like(x), doubled_residual=2 * x
    )
    total = choose(
        carried + written,
        in_place=x.add_(written),
        mean=(carried + written) / 2,
        multiplied=carried * written,
    )
    output = choose(
        norm(total),
        pre_norm=total,
        norm_before_sum=total,
        no_norm=total,
        new_norm=nn.LayerNorm(total.size(-1))(total),
        no_weights=F.layer_norm(total, total.shape[-1:]),
    )
    return choose(output, second_residual=x + output, activation=output.relu())
