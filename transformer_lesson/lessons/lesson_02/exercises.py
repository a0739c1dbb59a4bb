"""Lesson 02: vectors that know their position."""

import math

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model.positions import sinusoidal_encoding as encoding_of

SIZES = ((), (3, 2), (1, 3), (13, 2), (), (3, 24))
BASES = (10.0, 10000.0, 30.0, 7.0, 20.0, 10.0)
"""Draw by draw: how many positions and pairs, where that is not left to the draw; and the base.

Small bases keep wrong angles small, so that float32 tells them apart, too. 24 pairs make
`base ** two_i` infinite in float32.
"""


def _sinusoidal_inputs(draw: Draw) -> tuple:
    sizes = () if draw.small and draw.number > 2 else draw.one_of(SIZES)
    draw.sizes.update(zip(("n_positions", "pair"), sizes, strict=False))
    draw.sizes["d_model"] = 2 * draw.size("pair")
    base = float(draw.unless_unseen(int(draw.one_of(BASES)), 5, 60))
    return draw.size("n_positions"), draw.sizes["d_model"], base


@breaks("a first row that is not 0, 1, 0, 1")
def _starts_at_zero(answer, inputs: tuple, encoding: Tensor) -> str | None:
    first = torch.tensor([0.0, 1.0]).repeat(encoding.size(1) // 2)
    if torch.allclose(encoding[0].float(), first, atol=1e-5):
        return None
    return (
        "Row 0 must be 0, 1, 0, 1, ...: the sine and the cosine of angle 0, in turn.\n"
        "Do your positions count from 0? Are the sines in even columns and the cosines in odd ones?"
    )


@breaks("two angles in one pair")
def _pairs_share_an_angle(answer, inputs: tuple, encoding: Tensor) -> str | None:
    lengths = encoding.double().unflatten(1, (-1, 2)).norm(dim=-1)  # (n_positions, pair)
    if torch.allclose(lengths, torch.ones_like(lengths), atol=1e-4):
        return None
    position, pair = (lengths - 1).abs().gt(1e-4).nonzero()[0].tolist()
    return (
        f"Columns {2 * pair} and {2 * pair + 1} are the sine and the cosine of one angle, so their "
        f"squares sum to 1. Yours sum to {lengths[position, pair] ** 2:.3g} at position {position}."
        "\nDo both columns of each pair get the same exponent?"
    )


@breaks("another angle in the first pair")
def _first_pair_is_the_position(answer, inputs: tuple, encoding: Tensor) -> str | None:
    angle = torch.arange(len(encoding), dtype=torch.float64)
    wrong = (encoding[:, 0].double() - angle.sin()).abs() > 1e-4
    if not wrong.any():
        return None
    position = int(wrong.nonzero()[0])
    return (
        f"In the first pair 2i is 0, so its angle is the position itself: column 0 of position "
        f"{position} is sin({position}) = {math.sin(position):.4f}. "
        f"Yours is {encoding[position, 0]:.4f}."
    )


@breaks("positions that are not exact")
def _any_number_of_positions(answer, inputs: tuple, encoding: Tensor) -> str | None:
    if len(encoding) > 1:
        return None  # once is enough
    for n, d_model in ((5003, 2), (2, 640)):
        yours = answer(n, d_model, 10.0)
        angle = torch.arange(n, dtype=torch.float64)  # of the first pair
        wrong = (yours[:, 0].double() - angle.sin()).abs() > 1e-3
        if wrong.any():
            position = int(wrong.nonzero()[0])
            return (
                f"Of {n} positions number {position} is wrong: column 0 must be sin({position}) = "
                f"{math.sin(position):.4f}. Yours is {yours[position, 0]:.4f}.\n"
                "Are the positions whole numbers, or floats of few digits?"
            )
    return None


@exercise(
    reference="transformer_lesson.model.positions:sinusoidal_encoding",
    make_inputs=_sinusoidal_inputs,
    draws=6,
    returns={"encoding": "n_positions d_model"},
    hints=(
        "Dimensions 2i and 2i + 1 share one angle: position / base^(2i / d_model).",
        "`torch.arange(n_positions)[:, None]` times a row of frequencies gives all angles at "
        "once, in shape (n_positions, d_model / 2).",
        "With 2i = `torch.arange(0, d_model, 2)`, the angle is `position / base ** "
        "(two_i / d_model)`. Fill `encoding[:, 0::2]` with its sine and `encoding[:, 1::2]` "
        "with its cosine.",
    ),
    invariants=(
        _starts_at_zero,
        _pairs_share_an_angle,
        _first_pair_is_the_position,
        _any_number_of_positions,
    ),
)
def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    """Return a sine and a cosine of position / base^(2i / d_model), side by side."""
    position = torch.arange(n_positions)[:, None].double()
    position = choose(position, from_1=position + 1, from_0_to_1=position / max(n_positions - 1, 1))
    column = torch.arange(d_model)
    two_i = choose(column - column % 2, angle_for_each_column=column)
    angle = _angle(position, two_i, d_model, choose(base, always_10000=10000.0))
    angle = choose(angle, degrees=torch.deg2rad(angle))
    encoding = _waves(angle, column)
    return choose(encoding, transposed=encoding.T, last_position=encoding[-1])


def _angle(position, two_i, d_model, base):
    """Return the angles, in radians."""
    exponent = choose(
        two_i / d_model,
        i_alone=two_i / 2 / d_model,
        doubled=2 * two_i / d_model,
        last_is_base=two_i / (d_model - 2),
        no_width=two_i.double(),
    )
    exponent = choose(exponent, growing=-exponent)
    frequency = choose(
        base**-exponent,
        infinite_power=(torch.tensor(base) ** two_i) ** (-1 / d_model),
        not_in_the_exponent=two_i * base ** (-1 / d_model),
        width_divides_last=base ** -two_i.double() / d_model,
        logarithm_to_10=torch.exp(-exponent * math.log10(base)),
        base_e=torch.exp(-exponent),
    )
    return choose(position * frequency, frequency_alone=frequency.expand(len(position), -1))


def _waves(angle, column):
    """Return sines and cosines of the angles in their columns."""
    sine, cosine, even = angle.sin(), angle.cos(), column % 2 == 0
    encoding = choose(
        torch.where(even, sine, cosine),
        exchanged=torch.where(even, cosine, sine),
        sines_alone=sine,
        cosines_missing=torch.where(even, sine, 0.0),
    )
    encoding = choose(encoding, last_pair_empty=encoding * (column < len(column) - 2))
    sines, cosines = encoding[:, 0::2], encoding[:, 1::2]
    return choose(encoding, sines_first=torch.cat([sines, cosines], dim=1))


STEPS = (1, -2, 3, 0, -1, 5)
"""Draw by draw: how many positions on."""


def _shift_inputs(draw: Draw) -> tuple:
    pairs = draw.size("pair") if draw.small else draw.one_of((2, 3, 1, 4, 5, 24))
    draw.sizes["d_model"] = 2 * pairs
    return draw.unless_unseen(draw.one_of(STEPS), -40, 40), 2 * pairs, draw.one_of(BASES)


@breaks("a matrix that does not lead from one place to the other")
def _takes_every_place_on(answer, inputs: tuple, matrix: Tensor) -> str | None:
    k, d_model, base = inputs
    first = max(0, -k)  # there is no position before 0
    places = encoding_of(first + abs(k) + 4, d_model, base).double()
    for place in (first, first + 3):
        moved = places[place] @ matrix.double()
        wrong = (moved - places[place + k]).abs() > 1e-4
        if wrong.any():
            column = int(wrong.nonzero()[0])
            return (
                f"PE({place}) times your matrix must be PE({place + k}), because k is {k}. In "
                f"column {column} that is {places[place + k, column]:.4f}, and yours gives "
                f"{moved[column]:.4f}."
            )
    return None


@exercise(
    reference="transformer_lesson.model.positions:shift_matrix",
    make_inputs=_shift_inputs,
    draws=6,
    returns={"matrix": "d_model d_model"},
    hints=(
        "In k positions, hand i turns by the angle k / base^(2i / d_model), wherever it starts. "
        "The first column of its block makes the new sine from the old sine and cosine, and the "
        "second column makes the new cosine.",
        "The new sine is sin(a) cos(b) + cos(a) sin(b), so the first column is cos(b), sin(b) for "
        "the angle b. The block is [[cos, -sin], [sin, cos]].",
        "Start with zeros of shape (d_model, d_model) and fill the rows and columns 2i and 2i + 1 "
        "of each hand, or give the blocks to `torch.block_diag`.",
    ),
    invariants=(_takes_every_place_on,),
)
def shift_matrix(k, d_model, base=10000.0):
    """Return one rotation for each pair of dimensions, along the diagonal."""
    k = choose(k, never_back=abs(k))
    two_i = torch.arange(0, d_model, 2).double()
    exponent = choose(
        two_i / d_model,
        i_alone=two_i / 2 / d_model,
        no_width=two_i,
        pairs_from_1=(two_i + 2) / d_model,
    )
    frequency = base**-exponent
    frequency = choose(frequency, one_speed=torch.ones_like(frequency))
    angle = choose(k * frequency, degrees=torch.deg2rad(k * frequency))
    sine, cosine = angle.sin(), angle.cos()
    blocks = choose(
        torch.stack([cosine, -sine, sine, cosine], dim=-1),
        without_minus=torch.stack([cosine, sine, sine, cosine], dim=-1),
        exchanged=torch.stack([sine, -cosine, cosine, sine], dim=-1),
        cosines_alone=torch.stack([cosine, 0 * sine, 0 * sine, cosine], dim=-1),
    ).view(-1, 2, 2)
    matrix = torch.block_diag(*blocks)
    sines_first = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return choose(matrix, halves=matrix[sines_first][:, sines_first])
