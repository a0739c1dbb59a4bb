"""Showing a failing example as text: what went in, what was expected, what came out."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from transformer_lesson.exercises.attempt import Failed, call
from transformer_lesson.exercises.compare import (
    as_parts,
    difference,
    match_form,
    named_shape,
    same,
)
from transformer_lesson.exercises.specification import Draw, Exercise

SMALL = ((2,), (2, 3), (3, 2), (3,))  # sizes of tiny inputs, smallest first; see `Draw`
LONGEST = 40  # numbers of one tensor that are printed in full
LONGEST_TEXT = 300  # characters of anything else


def argument_names(exercise: Exercise) -> list[str]:
    """Return the names of the exercise's arguments, in order."""
    return list(inspect.signature(exercise.load_reference()).parameters)


def named_inputs(exercise: Exercise, inputs: tuple) -> list[tuple[str, Any]]:
    """Return each argument with its name, those left out that are functions."""
    pairs = zip(argument_names(exercise), inputs, strict=False)
    return [(name, value) for name, value in pairs if not inspect.isfunction(value)]


def describe_inputs(exercise: Exercise, inputs: tuple, draw: Draw) -> str:
    """Return each argument in a few words, tensors by their named shape."""
    words = []
    for name, value in named_inputs(exercise, inputs):
        if isinstance(value, Tensor):
            words.append(f"{name} {named_shape(value.shape, draw.sizes)}")
        elif isinstance(value, tuple):
            shapes = [named_shape(part.shape, draw.sizes) for part in value]
            words.append(f"{name} of {' and '.join(shapes)}")
        else:
            words.append(f"{name}{show(value)}")
    return ", ".join(words)


def smallest_example(exercise: Exercise, answer: Callable, draw: Draw) -> str:
    """Return the smallest example on which the answer's values differ from the reference's.

    Tiny inputs of the same kind come first; the failing draw itself is the last resort.
    """
    for small in SMALL:
        try:
            example = _example(exercise, answer, Draw(draw.number, small))
        except Failed:  # tiny inputs broke the answer in another way; larger ones may not
            continue
        if example:
            return example
    return _example(exercise, answer, draw) or "The same inputs gave another result this time."


def _example(exercise: Exercise, answer: Callable, draw: Draw) -> str | None:
    """Return what goes in and comes out on one draw, or `None` if the values are right."""
    inputs = exercise.make_inputs(draw)
    expected = as_parts(exercise.load_reference()(*inputs), exercise.returns)
    mine = as_parts(call(answer, inputs), exercise.returns)
    lines = ["Smallest failing example:"]
    lines += [f"{name} ={show(value)}" for name, value in named_inputs(exercise, inputs)]
    for (name, axes), right, part in zip(exercise.returns.items(), expected, mine, strict=True):
        yours = match_form(name, right, part, draw.sizes)
        if not same(right, yours):
            lines += [f"{name}, expected:{show(right)}", f"{name}, yours:{show(yours)}"]
            return "\n".join([*lines, difference(right, yours, axes, draw.sizes)])
    return None


def show(value: Any) -> str:
    """Return a value as text short enough for a message, after a space or on lines of its own."""
    if isinstance(value, Tensor):
        array = value.detach().numpy()
        text = np.array2string(
            array, precision=3, suppress_small=True, separator=", ", threshold=LONGEST, edgeitems=1
        )
        return f"\n{text}" if array.ndim > 1 else f" {text}"
    if isinstance(value, tuple):
        return "".join(map(show, value))
    return f" {textwrap.shorten(repr(value), LONGEST_TEXT)}"
