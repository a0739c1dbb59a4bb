"""A formula that is right in one precision only: what limits it, and what to write instead."""

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
"""Functions of PyTorch that make a float32 unless told otherwise, the likeliest first."""

DOUBLE_ONLY = "Your formula is right, but only in double precision."


def is_double(inputs: tuple) -> bool:
    """Return whether an exercise's inputs are in double precision, or some of them."""
    return any(map(_is_double, inputs))


def is_half(inputs: tuple) -> bool:
    """Return whether an exercise's inputs are in half precision, or some of them."""
    return any(isinstance(value, Tensor) and value.dtype == torch.float16 for value in inputs)


def in_precision(exercise: Exercise, dtype: torch.dtype) -> Exercise:
    """Return an exercise whose inputs are those that are drawn, in one precision."""
    return replace(exercise, make_inputs=lambda draw: _converted(exercise.make_inputs(draw), dtype))


def only_single(exercise: Exercise, answer: Callable, draw: Draw, failure: str) -> str:
    """Return, in a sentence, what an answer raised in double precision, and what to write."""
    error, *lines = failure.splitlines()
    kind = error.removeprefix(RAISED).strip().partition(":")[0]
    own = [line.partition(":")[0] for line in lines if line.startswith("line ")]
    place = f" ({own[-1]})" if own else ""
    return (
        f"One thing limits it: in double precision it raises {kind}{place}. What your code "
        f"makes is in single precision unless you write, say, `{_told(exercise, answer, draw)}`."
    )


def comes_back_single(
    exercise: Exercise, answer: Callable, draw: Draw, expected: list, yours: list
) -> str:
    """Return, in a sentence, which result of double precision comes back in single, if one does."""
    for name, right, mine in zip(exercise.returns, expected, yours, strict=True):
        if _is_double(right) and mine.dtype == torch.float32:
            return (
                f"One thing limits it: in double precision `{name}` comes back in single. What "
                f"your code makes is in single precision unless you write, say, "
                f"`{_told(exercise, answer, draw)}`."
            )
    return ""


def only_double(exercise: Exercise, answer: Callable, draw: Draw, failure: str) -> str:
    """Return what to tell of an answer that raises in single precision alone."""
    return (
        f"{DOUBLE_ONLY} Models compute in single precision, where it raises an error.\n"
        f"Leave the precision to the inputs: write, say, `{_told(exercise, answer, draw)}`.\n"
        f"{failure}"
    )


def other_dtype(exercise: Exercise, answer: Callable) -> str:
    """Return which dtype an answer's results have where ours have another; "" if none do."""
    if exercise.trial:
        return ""  # what a trial returns is not the function's
    ours, theirs = exercise.load_reference(), answer
    for number in range(exercise.draws):
        inputs, fresh = (exercise.make_inputs(Draw(number)) for _ in range(2))
        given = outcome(theirs, fresh)  # it may raise where a remark has told so
        pairs = zip(_flat(ours(*inputs)), _flat(given.result), strict=False)
        for right, mine in pairs:
            both = right.is_floating_point() and mine.is_floating_point()
            if both and mine.dtype != right.dtype:
                return str(mine.dtype).removeprefix("torch.")
    return ""


def in_dtype_of_inputs(function: Callable) -> Callable:
    """Return a function whose results have the dtype of its inputs, float32 where none has one.

    Args:
        function: takes and returns tensors, or tuples of them, among other things.
    """

    @wraps(function)
    def cast(*arguments, **options):
        """Return the function's result in the dtype of its first floating-point argument."""
        given = [*arguments, *options.values()]
        floats = [one for one in _flat(given) if one.is_floating_point()]
        return _converted(
            function(*arguments, **options), floats[0].dtype if floats else torch.float32
        )

    return cast


def _flat(values: Any) -> list[Tensor]:
    """Return all tensors in a value, and in the lists and tuples in it."""
    if isinstance(values, tuple | list):
        return [one for value in values for one in _flat(value)]
    return [values] if isinstance(values, Tensor) else []


def _is_double(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_double, value))
    return isinstance(value, Tensor) and value.dtype == torch.float64


def _converted(value: Any, dtype: torch.dtype) -> Any:
    """Return a value with the tensors of numbers in it, and in plain tuples, in one precision."""
    if type(value) is tuple:
        return tuple(_converted(part, dtype) for part in value)
    is_number = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if is_number else value


def _told(exercise: Exercise, answer: Callable, draw: Draw) -> str:
    """Return a call that makes a tensor in an argument's precision, of the kind in the answer."""
    written = inspect.unwrap(answer)  # no exercise with a trial draws double precision
    used = written.__code__.co_names if inspect.isfunction(written) else ()
    maker = next((name for name in MAKERS if name in used), "zeros")
    named = zip(argument_names(exercise), exercise.make_inputs(Draw(draw.number)), strict=False)
    of = next(name for name, value in named if _converted(value, torch.float16) is not value)
    return f"torch.{maker}(..., dtype={of}.dtype)"
