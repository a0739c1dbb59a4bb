"""Telling which known mistake an answer makes, by what it gives on the random inputs."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_lesson.exercises.attempt import Failed, call
from transformer_lesson.exercises.comparison import ABSOLUTE, RELATIVE
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.specification import DRAWS, Draw, Exercise, Mistake


class Outcome(NamedTuple):
    """What a function gave: a result, or the type of what it raised; and its arguments after."""

    result: Any
    raised: type | None
    inputs: tuple


def recognize(exercise: Exercise, answer: Callable) -> Mistake | None:
    """Return the known mistake that gives what the answer gives on every draw, if there is one."""
    mine = [outcome(exercise, answer, number) for number in range(DRAWS)]
    for mistake in MISTAKES.get(exercise.name, ()):
        draws = enumerate(mine)
        if all(alike(outcome(exercise, mistake.version, number), one) for number, one in draws):
            return mistake
    return None


def outcome(exercise: Exercise, answer: Callable, number: int) -> Outcome:
    """Call an answer with the inputs of one draw."""
    inputs = exercise.make_inputs(Draw(number))
    try:
        return Outcome(_copied(call(answer, inputs)), None, inputs)
    except Failed as failure:
        return Outcome(None, type(failure.__cause__), inputs)


def alike(one: Any, other: Any) -> bool:
    """Return whether two results are the same but for rounding, NaN included.

    The precision of numbers is no difference, their kind is: 1 is not 1.0, nor is it True.
    """
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _form(one) == _form(other) and torch.allclose(
            one.double(), other.double(), RELATIVE, ABSOLUTE, equal_nan=True
        )
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=RELATIVE) or (one != one and other != other)
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other)
    if isinstance(one, int | str | dict | type | None):
        return one == other
    return callable(one)


def _form(numbers: Tensor) -> tuple:
    kind = "float" if numbers.is_floating_point() else numbers.dtype
    return numbers.shape, kind, numbers.device, numbers.layout


def _copied(result: Any) -> Any:
    """Keep a result as it is now: the answer may write into its tensors again."""
    if isinstance(result, tuple | list):
        return [_copied(part) for part in result]
    if isinstance(result, Tensor) and result.ndim == 0 and result.is_cpu:
        return result.item()  # a number in a tensor is a number
    return result.detach().clone() if isinstance(result, Tensor) else result
