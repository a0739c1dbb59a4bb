"""Showing a failing example as text: inputs, expected result, actual result."""

import inspect
import textwrap
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product, zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Failed, call
from transformer_lesson.exercises.engine.compare import (
    as_parts,
    difference,
    match_form,
    named_shape,
    same,
)
from transformer_lesson.exercises.engine.specification import Draw, Exercise

OTHERS = ((1,), (1, 2), (2, 1), (2,), (2, 3), (3, 2), (3,))
SMALL = [(batch, *sizes) for batch in (1, 2) for sizes in OTHERS]  # tiny sizes; see `Draw`
LONGEST = 40  # elements of a tensor printed in full
DIGITS = (3, 5, 8)  # of a number; the fewest that show a difference
LONGEST_TEXT = 300  # characters of anything else
WIDEST = 80  # characters of a line
MOST_LINES = 19  # of an example; a longer one shows only the inputs' shapes


def argument_names(exercise: Exercise) -> list[str]:
    """Return the names of the exercise's arguments, in order."""
    return list(inspect.signature(exercise.tried_reference()).parameters)


def named_inputs(exercise: Exercise, inputs: tuple) -> list[tuple[str, Any]]:
    """Return each argument with its name, functions left out."""
    pairs = zip(argument_names(exercise), inputs, strict=False)
    return [(name, value) for name, value in pairs if not inspect.isfunction(value)]


def describe_inputs(exercise: Exercise, inputs: tuple, draw: Draw) -> str:
    """Describe each argument in a few words, tensors by their named shape."""
    words = []
    for name, value in named_inputs(exercise, inputs):
        if isinstance(value, Tensor):
            words.append(f"{name} {named_shape(value.shape, draw.sizes)}")
        elif type(value) is tuple:
            shapes = [named_shape(part.shape, draw.sizes) for part in value]
            words.append(f"{name} of {' and '.join(shapes)}")
        else:
            words.append(f"{name}{show(value)}")
    return ", ".join(words)


def smallest_example(
    exercise: Exercise,
    answer: Callable,
    draw: Draw,
    breach: Callable[[Draw], str | None] = lambda draw: "",
) -> str | None:
    """Return the smallest example on which the answer's values differ from the reference's.

    Tiny versions of all kinds of inputs are tried first, smallest first; the failing draw itself is
    the last resort. `None` if the answer is right on all of them.

    Args:
        exercise: the exercise.
        answer: fails on the draw.
        draw: of random inputs.
        breach: what is wrong on a draw, to be said in front of its example; `None` if nothing is,
            and then it is no example.
    """
    for sizes in [*_tiny(exercise.make_inputs, exercise.draws), (draw.number, draw.small)]:
        try:
            example = _example(exercise, answer, Draw(*sizes))
            sentence = breach(Draw(*sizes)) if example else None
        except Failed:  # fails in another way on these inputs; try others
            continue
        if sentence is not None:
            return f"{sentence}\n{example}" if sentence else example
    return None


@lru_cache(maxsize=100)
def _tiny(make_inputs: Callable, draws: int) -> list[tuple]:
    """Return the numbers and sizes of tiny draws, smallest first."""
    tiny = product(range(draws), SMALL)
    return sorted(tiny, key=lambda sizes: _amount(make_inputs(Draw(*sizes))))


def _amount(value: Any) -> int:
    """Return how much there is to read: elements and axes of a tensor, characters of a text."""
    if isinstance(value, Tensor):
        return value.numel() + value.ndim
    if isinstance(value, tuple | list):
        return sum(map(_amount, value))
    return 0 if inspect.isfunction(value) else len(repr(value))


def _example(exercise: Exercise, answer: Callable, draw: Draw) -> str | None:
    """Return inputs and results of one draw as text, or `None` if the values are right."""
    inputs = exercise.make_inputs(draw)
    expected = as_parts(exercise.tried_reference()(*inputs), exercise.returns)
    mine = as_parts(call(answer, inputs), exercise.returns)
    for (name, axes), right, part in zip(exercise.returns.items(), expected, mine, strict=True):
        yours = match_form(name, right, part, draw.sizes)
        if not same(right, yours):
            pairs = ((show(right, digits), show(yours, digits)) for digits in DIGITS)
            texts = next((pair for pair in pairs if pair[0] != pair[1]), (show(right), show(yours)))
            results = [f"{name}, expected:{texts[0]}", f"{name}, yours:{texts[1]}"]
            results = [*_packed(results), difference(right, yours, axes, draw.sizes)]
            arguments = named_inputs(exercise, inputs)
            lines = _packed(f"{argument} ={show(value)}" for argument, value in arguments)
            if len(lines) + len(results) > MOST_LINES:
                lines = [describe_inputs(exercise, inputs, draw)]
            return "\n".join(["Smallest failing example:", *lines, *results])
    return None


def _packed(texts: Iterable[str]) -> list[str]:
    """Return the texts' lines, multi-line texts side by side where they fit."""
    packed: list[list[str]] = []
    for lines in map(str.splitlines, texts):
        if packed and len(lines) > 1 and len(packed[-1]) > 1:
            width = max(map(len, packed[-1])) + 4
            if width + max(map(len, lines)) <= WIDEST:
                pairs = zip_longest(packed.pop(), lines, fillvalue="")
                lines = [f"{line:{width}}{other}".rstrip() for line, other in pairs]
        packed.append(lines)
    return [line for lines in packed for line in lines]


def show(value: Any, digits: int = DIGITS[0]) -> str:
    """Return a value as short text that begins with a space or a line break."""
    if isinstance(value, Tensor):
        value = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
        array = value.numpy()  # NumPy has no bfloat16
        array = array + 0.0 if value.is_floating_point() else array  # -0.0 is 0.0
        text = np.array2string(
            array,
            precision=digits,
            suppress_small=True,
            separator=", ",
            threshold=LONGEST,
            edgeitems=1,
        )
        return "\n" + text.replace("\n\n", "\n") if array.ndim > 1 else f" {text}"
    if type(value) is tuple:  # not a named tuple, whose repr says what it is
        return "".join(show(item, digits) for item in value)
    if isinstance(value, float):
        return f" {value:.{digits + 1}g}"
    return f" {textwrap.shorten(repr(value), LONGEST_TEXT)}"
