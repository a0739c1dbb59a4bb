"""Lesson 14, first part: half repairs and other bugs of positions."""

import math

import torch

from transformer_lesson.exercises.bug_hunt import bugs_1
from transformer_lesson.exercises.specification import Mistake


def by_formula(n, d_model, first=0, column_from=0, pairs=True, swapped=False):
    """The encoding entry by entry, with places for a bug."""
    rows = []
    for pos in range(first, first + n):
        row = []
        for column in range(column_from, column_from + d_model):
            two_i = 2 * (column // 2) if pairs else column
            angle = pos / 10000 ** (two_i / d_model)
            row.append(math.cos(angle) if column % 2 != swapped else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


def sines_and_cosines(n, d_model, divisor=None, cosine_first=False):
    """The encoding for any width, columns cut where there is no room."""
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n)[:, None] / 10000 ** (two_i / (divisor or d_model))
    parts = (angle.cos(), angle.sin()) if cosine_first else (angle.sin(), angle.cos())
    return torch.stack(parts, dim=-1).flatten(1)[:, :d_model]


def rounded_up(n, d_model):
    """One column too many for an odd width."""
    return sines_and_cosines(n, d_model + d_model % 2, divisor=d_model)


def last_column_empty(n, d_model):
    """Zeros in the column that has no partner."""
    encoding = sines_and_cosines(n, d_model)
    encoding[:, d_model - d_model % 2 :] = 0.0
    return encoding


def powers(d_model, step=2, log=None, sign=-1, width=None):
    """Frequencies from an exponent with places for a bug."""
    exponent = torch.arange(0, d_model, 2) / 2 * step
    log = math.log(10000.0) if log is None else log
    return torch.exp(sign * exponent * log / (width or d_model))


BUG_HUNT_1_POSITIONS_MISTAKES = {
    "encoding_by_formula": (
        Mistake(
            "counting positions and columns from 1",
            "The formula counts both from 0. From 1, the rows are those of the next positions, "
            "and a sine no longer stands beside the cosine of its angle.",
            lambda *inputs: bugs_1.encoding_by_formula(*inputs),
        ),
        Mistake(
            "counting positions from 1",
            "The columns are right. But row 0 is the row of position 1, so a model trained with "
            "positions from 0 sees every token one place later.",
            lambda n, d: by_formula(n, d, first=1),
        ),
        Mistake(
            "counting columns from 1",
            "The rows are right. But column 0 is treated as dimension 1: cosines and sines have "
            "changed places, and pairs are torn apart.",
            lambda n, d: by_formula(n, d, column_from=1),
        ),
        Mistake(
            "a frequency for every column",
            "Columns 2i and 2i + 1 share one angle. In yours each column has its own, so a sine "
            "has no cosine to turn with.",
            lambda n, d: by_formula(n, d, pairs=False),
        ),
        Mistake(
            "a swap of sines and cosines",
            "The angles are right. Even columns are sines and odd ones cosines, so position 0 is "
            "0, 1, 0, 1.",
            lambda n, d: by_formula(n, d, swapped=True),
        ),
    ),
    "encoding_of_any_width": (
        Mistake(
            "one cosine more than there is room",
            "An odd width has one even column more than odd ones. `angle` has as many columns as "
            "there are sines: how many cosines fit?",
            lambda *inputs: bugs_1.encoding_of_any_width(*inputs),
        ),
        Mistake(
            "a width rounded up",
            "It no longer fails here. It fails later, where the encoding is added to embeddings "
            "of d_model numbers. Cut off what has no room.",
            rounded_up,
        ),
        Mistake(
            "an empty last column",
            "Nothing fails, and the last number says nothing about the position. There is room "
            "for one more sine.",
            last_column_empty,
        ),
        Mistake(
            "the exponent of the next even width",
            "The columns fit, but the exponents are divided by d_model + 1. The formula divides "
            "by d_model, odd or not.",
            lambda n, d: sines_and_cosines(n, d, divisor=d + d % 2),
        ),
        Mistake(
            "a cosine in front of each sine",
            "Even columns are sines: position 0 begins with 0, 1. What has to go for an odd width "
            "is the last cosine.",
            lambda n, d: sines_and_cosines(n, d, cosine_first=True),
        ),
    ),
    "add_positions": (
        Mistake(
            "a position for each sentence",
            "All tokens of a sentence get the same vector, and each sentence another one. The "
            "first axis of `x` counts sentences: which one counts tokens?",
            lambda *inputs: bugs_1.add_positions(*inputs),
        ),
        Mistake(
            "a table in front of the tokens",
            "The length is right now. But (n, 1, d_model) still puts the positions where the "
            "sentences are. Leave the axis of size 1 away, or put it in front.",
            lambda x, table: x + table[: x.size(1), None],
        ),
        Mistake(
            "counting positions from 1",
            "Every token stands one place too far. The first row of the table is position 0.",
            lambda x, table: x + table[1 : x.size(1) + 1],
        ),
        Mistake(
            "the end of the table",
            "A sentence of n tokens stands at positions 0 to n - 1, not at the end of the table.",
            lambda x, table: x + table[-x.size(1) :],
        ),
        Mistake(
            "one vector for all places",
            "An index where a slice should be: every token gets the row of position n.",
            lambda x, table: x + table[x.size(1)],
        ),
    ),
    "frequencies": (
        Mistake(
            "one factor for all entries",
            "0, 2, 4, ... times one number grows evenly: the first pair never moves and the others "
            "race. Each entry belongs into the exponent.",
            lambda *inputs: bugs_1.frequencies(*inputs),
        ),
        Mistake(
            "an exponent without its minus",
            "10000^(2i / d_model) grows from 1 to 10000: these are wavelengths (divided by 2π), "
            "not frequencies. The exponent is negative.",
            lambda d: powers(d, sign=1),
        ),
        Mistake(
            "i in place of 2i",
            "The exponent runs only half as far: the slowest pair turns a hundredth as fast as "
            "the first, not a ten-thousandth. Take 0, 2, 4, ... over d_model.",
            lambda d: powers(d, step=1),
        ),
        Mistake(
            "a logarithm to base 10",
            "`exp` undoes `math.log`, the logarithm to base e. With `log10` the base becomes about "
            "55 instead of 10000.",
            lambda d: powers(d, log=4.0),
        ),
        Mistake(
            "2i over half of d_model",
            "The exponent is doubled and runs to 2: the slowest pair turns once in about 600 "
            "million tokens. Divide 2i by d_model.",
            lambda d: powers(d, width=d / 2),
        ),
    ),
}
