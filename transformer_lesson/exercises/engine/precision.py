"""Answers that are right in one precision only: what limits them, and what to write instead."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import RAISED, outcome
from transformer_lesson.exercises.engine.examples import argument_names
from transformer_lesson.exercises.engine.specification import Draw, Exercise

MAKERS = "eye zeros ones full empty tensor rand randn linspace logspace arange".split()
"""PyTorch functions that return float32 by default, the likeliest first."""

DOUBLE_ONLY = "Your formula is right, but only in double precision."


def is_double(inputs: tuple) -> bool:
    """Return whether some of an exercise's inputs are in double precision."""
    return any(map(_is_double, inputs))


def is_half(inputs: tuple) -> bool:
    """Return whether some of an exercise's inputs are in half precision."""
    return any(isinstance(value, Tensor) and value.dtype == torch.float16 for value in inputs)


def in_precision(exercise: Exercise, dtype: torch.dtype) -> Exercise:
    """Return an exercise with its inputs cast to one precision."""
    return replace(exercise, make_inputs=lambda draw: _converted(exercise.make_inputs(draw), dtype))


def only_single(exercise: Exercise, answer: Callable, draw: Draw, failure: str) -> str:
    """Say what an answer raised in double precision, and what to write instead."""
    error, *lines = failure.splitlines()
    kind = error.removeprefix(RAISED).strip().partition(":")[0]
    own_lines = [line.partition(":")[0] for line in lines if line.startswith("line ")]
    place = f" ({own_lines[-1]})" if own_lines else ""
    call = _suggested_call(exercise, answer, draw)
    return (
        f"One thing limits it: in double precision it raises {kind}{place}. What your code "
        f"makes is in single precision unless you write, say, `{call}`."
    )


def comes_back_single(
    exercise: Exercise, answer: Callable, draw: Draw, expected: list, yours: list
) -> str:
    """Say which result should be in double precision but is in single; "" if none is."""
    for name, right, mine in zip(exercise.returns, expected, yours, strict=True):
        if _is_double(right) and mine.dtype == torch.float32:
            return (
                f"One thing limits it: in double precision `{name}` comes back in single. What "
                f"your code makes is in single precision unless you write, say, "
                f"`{_suggested_call(exercise, answer, draw)}`."
            )
    return ""


def only_double(exercise: Exercise, answer: Callable, draw: Draw, failure: str) -> str:
    """Say what limits an answer that raises in single precision only."""
    call = _suggested_call(exercise, answer, draw)
    return (
        f"{DOUBLE_ONLY} Models compute in single precision, where it raises an error.\n"
        f"Leave the precision to the inputs: write, say, `{call}`.\n"
        f"{failure}"
    )


def other_dtype(exercise: Exercise, answer: Callable) -> str:
    """Return an answer's result dtype where ours differs; "" if it never does."""
    if exercise.trial:
        return ""  # a trial's results are not the function's
    ours, theirs = exercise.load_reference(), answer
    for number in range(exercise.draws):
        inputs, fresh = (exercise.make_inputs(Draw(number)) for _ in range(2))
        result = outcome(theirs, fresh)  # may raise: a remark has said so
        pairs = zip(_flat(ours(*inputs)), _flat(result.result), strict=False)
        for right, mine in pairs:
            both = right.is_floating_point() and mine.is_floating_point()
            if both and mine.dtype != right.dtype:
                return str(mine.dtype).removeprefix("torch.")
    return ""


def in_dtype_of_inputs(function: Callable) -> Callable:
    """Return a function whose results have its inputs' dtype, or float32 if no input is floating.

    Args:
        function: takes and returns tensors, or tuples of them, among other things.
    """

    @wraps(function)
    def cast(*arguments, **options):
        """Return the function's result in the dtype of its first floating-point argument."""
        values = [*arguments, *options.values()]
        floats = [tensor for tensor in _flat(values) if tensor.is_floating_point()]
        return _converted(
            function(*arguments, **options), floats[0].dtype if floats else torch.float32
        )

    return cast


def _flat(values: Any) -> list[Tensor]:
    """Return all tensors in a value, including those in lists and tuples."""
    if isinstance(values, tuple | list):
        return [tensor for value in values for tensor in _flat(value)]
    return [values] if isinstance(values, Tensor) else []


def _is_double(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_double, value))
    return isinstance(value, Tensor) and value.dtype == torch.float64


def _converted(value: Any, dtype: torch.dtype) -> Any:
    """Return a value with its floating-point tensors, including those in plain tuples, cast."""
    if type(value) is tuple:
        return tuple(_converted(part, dtype) for part in value)
    is_number = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if is_number else value


def _suggested_call(exercise: Exercise, answer: Callable, draw: Draw) -> str:
    """Return a call as in the answer, but with the dtype of an argument."""
    function = inspect.unwrap(answer)  # double precision is never drawn with a trial
    used = function.__code__.co_names if inspect.isfunction(function) else ()
    maker = next((name for name in MAKERS if name in used), "zeros")
    named = zip(argument_names(exercise), exercise.make_inputs(Draw(draw.number)), strict=False)
    argument = next(name for name, value in named if _converted(value, torch.float16) is not value)
    return f"torch.{maker}(..., dtype={argument}.dtype)"
