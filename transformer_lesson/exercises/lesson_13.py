"""Lesson 13: what today's models do in the places where the paper did something else."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise


def _rms_norm_inputs(draw: Draw) -> tuple:
    """A large epsilon shows where it is added, small tokens and a token of zeros that it is."""
    epsilon = draw.one_of((1e-5, 0.5, 1e-5, 1e-4, 1e-5, 0.0))
    if draw.number == 4:
        draw.sizes["n"] = 1
    draw.size("d_model", at_least=2)
    x = draw.normal("batch n d_model")
    if draw.number == 2:
        x = x.double().mT.contiguous().mT
    if draw.number in (3, 5):
        x = 0.01 * x
    if draw.number == 3:
        x[0, 0] = 0.0
    return x, draw.positive("d_model"), epsilon


def _mean_square_is_one(answer, inputs: tuple, result: Tensor) -> str | None:
    x, gamma, epsilon = inputs
    if epsilon > 1e-3 or (x * x).mean(dim=-1).min() < 0.01:
        return None
    square = ((result / gamma) ** 2).mean(dim=-1)
    wrong = (square - 1).abs()
    if wrong.max() < 0.02:
        return None
    return (
        "Before gamma, the mean of each token's squared numbers must be 1. "
        f"Yours reaches {square.flatten()[wrong.argmax()]:.4g}.\n"
        "Over which axis do you take the mean, and of what?"
    )


@exercise(
    reference="transformer_lesson.model.norm:rms_norm",
    make_inputs=_rms_norm_inputs,
    draws=6,
    returns={"normalized": "batch n d_model"},
    hints=(
        "LayerNorm without its mean and its beta. What is left to divide by is the root of "
        "the mean of the squares of each token's own numbers.",
        "`(x * x).mean(dim=-1, keepdim=True)` is the mean square, shape (batch, n, 1). "
        "Epsilon is added to it, inside the root.",
        "`x / (mean_square + epsilon).sqrt() * gamma`.",
    ),
    invariants=(_mean_square_is_one,),
)
def rms_norm(x, gamma, epsilon):
    """Return x / sqrt(mean(x^2) + epsilon) * gamma, token by token."""
    epsilon = choose(
        epsilon,
        epsilon_ignored=0.0,
        always_small=1e-5,
        library_default=torch.finfo(x.dtype).eps,
        next_to_nothing=1e-24,
        none_for_0=epsilon or 1e-5,
        squared_epsilon=epsilon**2,
    )
    x = choose(x, gamma_first=x * gamma)
    distance = x - x.mean(-1, keepdim=True)
    size = _size(x, distance, epsilon)
    numbers = choose(x, mean_subtracted=distance)
    normalized = choose(numbers / size, multiplied=numbers * size)
    gamma = choose(
        gamma,
        no_gamma=1.0,
        gamma_first=1.0,
        one_plus_gamma=1 + gamma,
        divided_by_gamma=1 / gamma,
    )
    return choose(
        normalized * gamma,
        in_place=x.copy_(normalized) * gamma,
        gamma_added=normalized + gamma,
        size_alone=size,
    )


def _size(x, distance, epsilon):
    """Return the root mean square of each token's numbers."""
    squares = choose(
        x * x, deviation=distance**2, mean_subtracted=distance**2, absolute=x.abs(), no_square=x
    )
    mean = choose(
        squares.mean(-1, keepdim=True),
        sum_of_squares=squares.sum(-1, keepdim=True),
        divided_outside_the_root=squares.sum(-1, keepdim=True),
        over_tokens=squares.mean(-2, keepdim=True),
        over_a_sentence=squares.mean((1, 2), keepdim=True),
        over_the_batch=squares.mean(0, keepdim=True),
        over_everything=squares.mean(),
        one_fewer=squares.sum(-1, keepdim=True) / (x.size(-1) - 1),
        largest=squares.amax(-1, keepdim=True),
    )
    return choose(
        (mean + epsilon).sqrt(),
        epsilon_outside=mean.sqrt() + epsilon,
        divided_outside_the_root=(mean + epsilon).sqrt() / x.size(-1),
        no_root=mean + epsilon,
        absolute=mean + epsilon,
        epsilon_as_a_limit=mean.clamp(min=epsilon).sqrt(),
    )


def _swiglu_inputs(draw: Draw) -> tuple:
    single = draw.one_of(("", "n", "", "batch"))
    if single:
        draw.sizes[single] = 1
    x = draw.normal("batch n d_model")
    W_gate, W_up, W_down = map(draw.normal, ("d_model d_ff", "d_model d_ff", "d_ff d_model"))
    if draw.number == 2:
        return x.double(), W_gate.double(), W_up.double(), W_down.double()
    return 100 * x if draw.number == 3 else x, W_gate, W_up, W_down


def _rotary_inputs(draw: Draw) -> tuple:
    """Tokens from 0 on, from elsewhere on, and in any order; one token; one pair."""
    single = draw.one_of(("", "", "batch", "d_half", "head", "n"))
    if single:
        draw.sizes[single] = 1
    x = torch.cat([draw.normal("batch head n d_half") for _ in range(2)], dim=-1)
    draw.sizes["d_head"] = x.size(-1)
    n = draw.size("n")
    positions = torch.arange(n) + draw.number if draw.number < 2 else draw.integers("n", 0, 40)
    if draw.number == 3:  # before the first token, and far on: exact for a single pair
        positions = draw.integers("n", -5000, 5000)
    if draw.number == 2:
        x = x.double()
    return x, positions, draw.one_of((10000.0, 10000.0, 100.0, 500000.0, 10.0, 10000.0))


def _lengths_stay(answer, inputs: tuple, rotated: Tensor) -> str | None:
    before, after = (t.double().norm(dim=-1) for t in (inputs[0], rotated))
    if torch.allclose(before, after, 1e-3, 1e-4):
        return None
    worst = (before - after).abs().argmax()
    return (
        "A rotation leaves the length of each vector as it is. Yours turns a length of "
        f"{before.flatten()[worst]:.4g} into {after.flatten()[worst]:.4g}.\n"
        "Write (a cos - b sin, b cos + a sin) for each pair (a, b)."
    )


@exercise(
    reference="transformer_lesson.model.positions:apply_rotary",
    helpers=(
        "transformer_lesson.model.positions:rotary_angles",
        "transformer_lesson.model.positions:turn_pairs",
    ),
    make_inputs=_rotary_inputs,
    draws=6,
    returns={"rotated": "batch head n d_head"},
    hints=(
        "Number j and number j + d_head / 2 are a pair (a, b), a point in a plane. Turn it by "
        "the angle position / base^(2j / d_head), with j from 0 to d_head / 2 - 1.",
        "All angles at once: `positions[:, None] * frequency`, shape (n, d_head / 2), with "
        "`frequency = base ** (-torch.arange(half) / half)`. It broadcasts over batch and head.",
        "`first, second = x[..., :half], x[..., half:]`; join `first * cos - second * sin` "
        "and `second * cos + first * sin` with `torch.cat` along the last axis.",
    ),
    invariants=(_lengths_stay,),
)
def apply_rotary(x, positions, base=10000.0):
    """Return x with each pair (j, j + d_head / 2) turned by its angle."""
    half = x.size(-1) // 2
    angle = _angles(positions, choose(base, always_10000=10000.0), half)
    angles = choose(
        (angle, angle), side_by_side=angle.repeat_interleave(2, dim=-1).chunk(2, dim=-1)
    )
    (cos, cos_2), (sin, sin_2) = [a.cos() for a in angles], [a.sin() for a in angles]
    cos, sin = choose((cos, sin), sine_and_cosine_exchanged=(sin, cos))
    cos_2, sin_2 = choose((cos_2, sin_2), sine_and_cosine_exchanged=(sin_2, cos_2))
    first, second = choose(
        (x[..., :half], x[..., half:]),
        neighbors=(x[..., ::2], x[..., 1::2]),
        neighbors_put_in_halves=(x[..., ::2], x[..., 1::2]),
        halves_exchanged=(x[..., half:], x[..., :half]),
    )
    one = choose(
        first * cos - second * sin,
        other_direction=first * cos + second * sin,
        two_plus_signs=first * cos + second * sin,
    )
    other = choose(
        second * cos_2 + first * sin_2,
        other_direction=second * cos_2 - first * sin_2,
        two_minus_signs=second * cos_2 - first * sin_2,
        with_the_new_first=second * cos_2 + one * sin_2,
        second_left_alone=second,
    )
    rotated = choose(
        torch.cat([one, other], dim=-1),
        neighbors=torch.stack([one, other], dim=-1).flatten(-2),
        halves_put_side_by_side=torch.stack([one, other], dim=-1).flatten(-2),
        put_back_exchanged=torch.cat([other, one], dim=-1),
    )
    return choose(
        rotated,
        sines_added=x + torch.cat([angle.sin(), angle.cos()], dim=-1),
        added_to_x=x + rotated,
    )


@exercise(
    reference="transformer_lesson.model.feed_forward:swiglu",
    make_inputs=_swiglu_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "Two maps widen x to d_ff, and their results are multiplied number by number. A third "
        "map narrows the product.",
        "Only the gate goes through swish, z * sigmoid(z), which PyTorch calls `F.silu`. The "
        "other stays linear.",
        "`gate = x @ W_gate`; the hidden layer is `gate * gate.sigmoid() * (x @ W_up)`.",
    ),
)
def swiglu(x, W_gate, W_up, W_down):
    """Return (swish(x W_gate) * x W_up) W_down."""
    W_gate, W_up = choose((W_gate, W_up), exchanged=(W_up, W_gate))
    gate = x @ W_gate
    up = choose(x @ W_up, no_up=torch.ones_like(gate), gate_twice=gate)
    up = choose(up, both_activated=F.silu(up))
    opened = choose(
        F.silu(gate),
        sigmoid=gate.sigmoid(),
        relu=gate.relu(),
        gelu=F.gelu(gate),
        gelu_by_tanh=F.gelu(gate, approximate="tanh"),
        tanh=gate.tanh(),
        softmax=gate.softmax(-1),
        no_activation=gate,
        swish_of_its_negative=gate * (-gate).sigmoid(),
        swish_twice=F.silu(F.silu(gate)),
        sharper_swish=gate * (1.702 * gate).sigmoid(),
        hard_swish=F.hardswish(gate),
        naive_exponential=gate * gate.exp() / (1 + gate.exp()),
    )
    hidden = choose(
        opened * up,
        added=opened + up,
        over_the_product=F.silu(gate * up),
    )
    output = choose(hidden @ W_down, not_narrowed=hidden)
    return choose(
        output,
        residual=x + output,
        activated_again=F.silu(output),
        scaled=output / hidden.size(-1) ** 0.5,
        squeezed=output.squeeze(),
    )


def _angles(positions, base, half):
    """Return each pair's angle at each position, shape (n, d_head / 2)."""
    positions = choose(
        positions,
        counted_from_0=torch.arange(len(positions)),
        counted_from_1=positions + 1,
        distance_to_the_first=positions - positions[0],
        counted_on_from_the_first=positions[0] + torch.arange(len(positions)),
    )
    j = choose(torch.arange(half), pairs_from_1=torch.arange(half) + 1)
    exponent = choose(
        j / half,
        half_the_exponent=j / (2 * half),
        twice_the_exponent=2 * j / half,
        up_to_1=j / max(half - 1, 1),
    )
    frequency = choose(
        base**-exponent,
        growing=base**exponent,
        slowest_first=(base**-exponent).flip(0),
    )
    angle = positions[:, None] * frequency
    return choose(angle, whole_turns=2 * torch.pi * angle, degrees=angle.deg2rad())


def _repeat_inputs(draw: Draw) -> tuple:
    """One key head, one query head for each, one token, one sentence."""
    single = draw.one_of(("", "", "", "kv_head", "batch", "n"))
    if single:
        draw.sizes[single] = 1
    draw.size("kv_head", at_least=2)
    n_groups = draw.one_of((3, 2, 4, 3, 1, 5))
    draw.sizes["head"] = draw.size("kv_head") * n_groups
    x = draw.normal("batch kv_head n d_head")
    return x.mT.contiguous().mT if draw.number == 2 else x, n_groups


@exercise(
    reference="transformer_lesson.model.attention:repeat_kv",
    make_inputs=_repeat_inputs,
    draws=6,
    returns={"repeated": "batch head n d_head"},
    hints=(
        "Neighbors share: with 2 key heads and n_groups = 3, query heads 0, 1, 2 read key "
        "head 0, and 3, 4, 5 read key head 1.",
        "Heads are axis 1. `repeat` writes 0, 1, 0, 1; `repeat_interleave` writes 0, 0, 1, 1. "
        "Which is wanted?",
        "`x.repeat_interleave(n_groups, dim=1)`.",
    ),
)
def repeat_kv(x, n_groups):
    """Return each key head n_groups times, its copies side by side."""
    batch, kv_heads, n, d_head = x.shape
    n_groups = choose(
        n_groups,
        always_two=2,
        one_copy_more=n_groups + 1,
        number_of_heads=kv_heads,
        groups_taken_for_heads=max(n_groups // kv_heads, 1),
    )
    repeated = choose(
        x.repeat_interleave(n_groups, dim=1),
        in_turns=x.repeat(1, n_groups, 1, 1),
        tokens_repeated=x.repeat_interleave(n_groups, dim=2),
        text_repeated=x.repeat(1, 1, n_groups, 1),
        batch_repeated=x.repeat_interleave(n_groups, dim=0),
        batch_in_turns=x.repeat(n_groups, 1, 1, 1),
        longer_heads=x.repeat_interleave(n_groups, dim=3),
        longer_heads_in_turns=x.repeat(1, 1, 1, n_groups),
        axis_of_their_own=x[:, :, None].expand(-1, -1, n_groups, -1, -1),
        first_head_for_all=x[:, :1].expand(-1, kv_heads * n_groups, -1, -1),
        not_repeated=x,
        flat=x.repeat_interleave(n_groups),
    )
    return choose(
        repeated,
        divided=repeated / n_groups,
        n_before_head=repeated.transpose(1, 2),
        last_head_first=repeated.flip(1),
        squeezed=repeated.squeeze(),
        squeezed_batch=repeated.squeeze(0),
        joined_with_the_batch=repeated.flatten(0, 1),
    )
