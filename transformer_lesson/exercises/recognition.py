"""Telling which known mistake an answer makes, by what it gives on the random inputs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from transformer_lesson.exercises.attempt import Failed, call
from transformer_lesson.exercises.compare import same
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.specification import DRAWS, Draw, Exercise, Mistake


class Outcome(NamedTuple):
    """What a function gave: a result, or the type of what it raised; and its arguments after.

    Arguments that are functions are left out: each call gets functions of its own.
    """

    result: Any
    raised: type | None
    inputs: tuple


def recognize(exercise: Exercise, answer: Callable) -> Mistake | None:
    """Return the known mistake that gives what the answer gives on every draw, if there is one."""
    mine = [outcome(exercise, answer, number) for number in range(DRAWS)]
    for mistake in MISTAKES.get(exercise.name, ()):
        draws = enumerate(mine)
        if all(same(outcome(exercise, mistake.version, number), one) for number, one in draws):
            return mistake
    return None


def outcome(exercise: Exercise, answer: Callable, number: int) -> Outcome:
    """Call an answer with the inputs of one draw."""
    inputs = exercise.make_inputs(Draw(number))
    result = raised = None
    try:
        result = _copied(call(answer, inputs))
    except Failed as failure:
        raised = type(failure.__cause__)
    return Outcome(result, raised, tuple(value for value in inputs if not callable(value)))


def _copied(result: Any) -> Any:
    """Keep a result as it is now: the answer may write into its tensors again."""
    if isinstance(result, tuple | list):
        return [_copied(part) for part in result]
    if isinstance(result, Tensor) and result.ndim == 0 and result.is_cpu:
        return result.item()  # a number in a tensor is a number
    return result.detach().clone() if isinstance(result, Tensor) else result
