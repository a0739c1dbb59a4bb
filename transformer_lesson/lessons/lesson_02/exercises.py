"""Lesson 02: vectors that know their position."""

import math

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise

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
    two_i = choose(
        column - column % 2, angle_for_each_column=column, hands_from_1=column - column % 2 + 2
    )
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
    return choose(
        encoding,
        sines_first=torch.cat([sines, cosines], dim=1),
        all_sines_first=torch.stack([sines, cosines]).reshape(encoding.shape),
    )


def _codes(draw: Draw) -> tuple:
    """Hands that point anywhere and turn by any angles: in draw 1 by smaller ones, in 3 by none."""
    pairs = draw.size("pair") if draw.small else draw.one_of((2, 3, 5, 4, 1))
    draw.sizes["pair"], draw.sizes["d_model"] = pairs, 2 * pairs
    start, turn = draw.integers("pair", -31, 32) / 10, draw.integers("pair", -31, 32) / 10
    turn = turn * draw.one_of((1.0, 0.5, 1.0, 0.0, 1.0))
    if draw.number == 2:
        start[0] = math.pi / 2  # a hand that lies level
    return tuple(
        torch.stack([angle.sin(), angle.cos()], dim=-1).flatten() for angle in (start, start + turn)
    )


@breaks("a matrix that does not lead from one code to the other")
def _leads_to_the_other(answer, inputs: tuple, matrix: Tensor) -> str | None:
    before, after = (code.double() for code in inputs)
    reached = before @ matrix.double()
    wrong = (reached - after).abs() > 1e-4
    if not wrong.any():
        return None
    column = int(wrong.nonzero()[0])
    return (
        f"`before` times your matrix must be `after`. In column {column} that is "
        f"{after[column]:.4f}, and yours gives {reached[column]:.4f}."
    )


@breaks("a matrix that is no rotation")
def _rotates(answer, inputs: tuple, matrix: Tensor) -> str | None:
    lengths = matrix.double().norm(dim=1)
    wrong = (lengths - 1).abs() > 1e-4
    if not wrong.any():
        return None
    row = int(wrong.nonzero()[0])
    return (
        "A rotation leaves every hand its length, wherever it points. Take the code whose only 1 "
        f"is in column {row}: your matrix makes a vector of length {lengths[row]:.4f} of it."
    )


@breaks("a mirror in place of a rotation")
def _does_not_mirror(answer, inputs: tuple, matrix: Tensor) -> str | None:
    pairs = range(0, len(matrix), 2)
    squares = torch.stack([matrix[i : i + 2, i : i + 2] for i in pairs]).double()
    mirrors = (squares.det() + 1).abs() < 1e-4
    if not mirrors.any():
        return None
    column = 2 * int(mirrors.nonzero()[0])
    return (
        f"The square of rows and columns {column} and {column + 1} mirrors the hand: its "
        "determinant is -1, and a rotation's is 1. It leads from this code to the other, but not "
        "from the next place to the one after. Which of the two sines needs the minus?"
    )


@exercise(
    reference="transformer_lesson.lessons.lesson_02.rotation:rotation_between",
    make_inputs=_codes,
    returns={"matrix": "d_model d_model"},
    hints=(
        "Take one hand, with its tip at (s, c) before and (s', c') after. The square's first "
        "column gives s' = s C + c S, its second column c' = c C - s S. What are C and S?",
        "The sum is (s² + c²) C = s s' + c c', and s² + c² = 1. For S, multiply the first equation "
        "by c and the second by -s: now C drops out. (Or get the two angles from "
        "`torch.atan2(s, c)` and subtract them.)",
        "C = s s' + c c' and S = c s' - s c'. Start with zeros of shape (d_model, d_model), and "
        "fill the rows and columns 2i and 2i + 1 of each hand with [[C, -S], [S, C]].",
    ),
    invariants=(_leads_to_the_other, _rotates, _does_not_mirror),
)
def rotation_between(before, after):
    """Return one rotation for each pair of numbers, along the diagonal."""
    n = len(before) // 2
    neighbors = torch.arange(2 * n)
    overlapping = (neighbors + 1) // 2
    place = choose(  # of each hand's numbers
        neighbors, halves=neighbors.view(2, n).T.flatten(), hands_overlap=overlapping
    )
    read = choose(place, halves_read=neighbors.view(2, n).T.flatten())
    (s, c), (s_after, c_after) = (code[read].view(n, 2).T for code in (before, after))
    cosine, sine = s * s_after + c * c_after, c * s_after - s * c_after
    cosine, sine = choose(
        (cosine, sine),
        backwards=(cosine, -sine),
        plus_for_minus=(cosine, c * s_after + s * c_after),
        never_left=(cosine, (1 - cosine.square()).clamp(min=0).sqrt()),
        first_hand_alone=(cosine[:1].expand_as(s), sine[:1].expand_as(s)),
        places_of_after=(c_after, s_after),
        half_a_turn_lost=_by_quotients(s, c, s_after, c_after),
        left_half_lost=_by_quotients(-c, s, -c_after, s_after),
    )
    blocks = choose(
        torch.stack([cosine, -sine, sine, cosine], dim=-1),
        without_minus=torch.stack([cosine, sine, sine, cosine], dim=-1),
        exchanged=torch.stack([sine, -cosine, cosine, sine], dim=-1),
        cosines_alone=torch.stack([cosine, 0 * sine, 0 * sine, cosine], dim=-1),
        quotients=torch.stack([s_after / s, 0 * s, 0 * s, c_after / c], dim=-1),
        each_onto_the_other=torch.stack(
            [s * s_after, s * c_after, c * s_after, c * c_after], dim=-1
        ),
    )
    back = place.argsort(stable=True)
    matrix = torch.zeros(2 * n, 2 * n, dtype=before.dtype)
    for i, block in enumerate(blocks.view(-1, 2, 2)):
        first = choose(2 * i, hands_overlap=i)
        matrix[first : first + 2, first : first + 2] = block
    matrix = matrix[back][:, back]
    return choose(matrix, all_onto_all=torch.outer(before, after) / before.square().sum())


def _by_quotients(s, c, s_after, c_after):
    """Return cosine and sine of the turn by `atan`, which takes a tip for the opposite one."""
    turn = (s_after / c_after).atan() - (s / c).atan()
    return turn.cos(), turn.sin()
