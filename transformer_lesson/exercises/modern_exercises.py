"""Lesson 13: what today's models do in the places where the paper did something else."""

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


def _rms_norm_inputs(draw: Draw) -> tuple:
    epsilon = 0.5 if draw.number == 1 else 1e-5  # a large one shows where it is added
    return draw.normal("batch n d_model"), draw.positive("d_model"), epsilon


def _rotary_inputs(draw: Draw) -> tuple:
    x = torch.cat([draw.normal("batch head n d_half") for _ in range(2)], dim=-1)
    draw.sizes["d_head"] = x.size(-1)
    n, number = draw.size("n"), draw.number % 5
    if number < 2:
        positions = torch.arange(n) + (0, 4)[number]
    else:
        positions = draw.integers("n", 0, 40)
    return x, positions, (10000.0, 10000.0, 100.0, 500000.0, 10.0)[number]


def _swiglu_inputs(draw: Draw) -> tuple:
    x = draw.normal("batch n d_model")
    W_gate, W_up = draw.normal("d_model d_ff"), draw.normal("d_model d_ff")
    return x, W_gate, W_up, draw.normal("d_ff d_model")


def _repeat_inputs(draw: Draw) -> tuple:
    draw.size("kv_head", at_least=2)
    n_groups = (3, 2, 4, 2, 5)[draw.number % 5]
    draw.sizes["head"] = draw.size("kv_head") * n_groups
    return draw.normal("batch kv_head n d_head"), n_groups


def _mean_square_is_one(answer, inputs: tuple, result: Tensor) -> str | None:
    x, gamma, epsilon = inputs
    if epsilon > 1e-3:
        return None
    square = ((result / gamma) ** 2).mean(dim=-1)
    wrong = (square - 1).abs()
    if wrong.max() < 0.02 or (x * x).mean(dim=-1).min() < 0.01:
        return None
    return (
        "Before gamma, the mean of each token's squared numbers must be 1. "
        f"Yours reaches {square.flatten()[wrong.argmax()]:.4g}.\n"
        "Over which axis do you take the mean, and of what?"
    )


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


MODERN_EXERCISES = (
    Exercise(
        name="rms_norm",
        reference="transformer_lesson.model.norm:rms_norm",
        make_inputs=_rms_norm_inputs,
        returns={"normalized": "batch n d_model"},
        hints=(
            "LayerNorm without its mean and its beta. What is left to divide by is the root of "
            "the mean of the squares of each token's own numbers.",
            "`(x * x).mean(dim=-1, keepdim=True)` is the mean square, shape (batch, n, 1). "
            "Epsilon is added to it, inside the root.",
            "`x / (mean_square + epsilon).sqrt() * gamma`.",
        ),
        invariants=(_mean_square_is_one,),
    ),
    Exercise(
        name="apply_rotary",
        reference="transformer_lesson.model.positions:apply_rotary",
        make_inputs=_rotary_inputs,
        returns={"rotated": "batch head n d_head"},
        hints=(
            "Number j and number j + d_head / 2 are a pair (a, b), a point in a plane. Turn it by "
            "the angle position / base^(2j / d_head), with j from 0 to d_head / 2 - 1.",
            "All angles at once: `positions[:, None] * frequency`, shape (n, d_head / 2), with "
            "`frequency = base ** (-torch.arange(half) / half)`. It broadcasts over batch and "
            "head.",
            "`first, second = x[..., :half], x[..., half:]`; join `first * cos - second * sin` "
            "and `second * cos + first * sin` with `torch.cat` along the last axis.",
        ),
        invariants=(_lengths_stay,),
    ),
    Exercise(
        name="swiglu",
        reference="transformer_lesson.model.feed_forward:swiglu",
        make_inputs=_swiglu_inputs,
        returns={"output": "batch n d_model"},
        hints=(
            "Two maps widen x to d_ff, and their results are multiplied number by number. A third "
            "map narrows the product.",
            "Only the gate goes through swish, z * sigmoid(z), which PyTorch calls `F.silu`. The "
            "other stays linear.",
            "`gate = x @ W_gate`; the hidden layer is `gate * gate.sigmoid() * (x @ W_up)`.",
        ),
    ),
    Exercise(
        name="repeat_kv",
        reference="transformer_lesson.model.attention:repeat_kv",
        make_inputs=_repeat_inputs,
        returns={"repeated": "batch head n d_head"},
        hints=(
            "Neighbors share: with 2 key heads and n_groups = 3, query heads 0, 1, 2 read key "
            "head 0, and 3, 4, 5 read key head 1.",
            "Heads are axis 1. `repeat` writes 0, 1, 0, 1; `repeat_interleave` writes 0, 0, 1, 1. "
            "Which is wanted?",
            "`x.repeat_interleave(n_groups, dim=1)`.",
        ),
    ),
)
