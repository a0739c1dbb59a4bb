"""Telling which known mistake an answer makes, by what it gives on the random inputs."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from transformer_lesson.exercises.attempt import Failed, call
from transformer_lesson.exercises.compare import same
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.specification import Draw, Exercise, Mistake


class Outcome(NamedTuple):
    """What a function gave: a result, or what it raised; and its arguments after.

    Of what it raised, the type's name is kept. `RuntimeError` alone says little, since PyTorch
    raises nothing else, so there the beginning of the message goes with it, without its numbers.

    Arguments that are functions are left out: each call gets functions of its own.
    """

    result: Any
    raised: str | None
    inputs: tuple


def recognize(exercise: Exercise, answer: Callable) -> Mistake | None:
    """Return the known mistake that gives what the answer gives on every draw, if there is one."""

    def outcomes(function: Callable) -> Iterator[Outcome]:
        for number in range(exercise.draws):
            yield outcome(function, exercise.make_inputs(Draw(number)))

    mine = list(outcomes(answer))
    for mistake in MISTAKES.get(exercise.name, ()):
        if all(map(same, outcomes(mistake.version), mine)):
            return mistake
    return None


def outcome(answer: Callable, inputs: tuple) -> Outcome:
    """Call an answer and keep what it gave, and what it left of its inputs."""
    result = raised = None
    try:
        result = _copied(call(answer, inputs))
    except Failed as failure:
        raised = type(failure.__cause__).__name__
        if raised == "RuntimeError":
            raised += re.sub(r"\d+", "", str(failure.__cause__))[:30]
    return Outcome(result, raised, tuple(value for value in inputs if not callable(value)))


def _copied(result: Any) -> Any:
    """Keep a result as it is now: the answer may write into its tensors again."""
    if isinstance(result, tuple | list):
        return [_copied(part) for part in result]
    if isinstance(result, Tensor) and result.ndim == 0 and result.is_cpu:
        return result.item()  # a number in a tensor is a number
    return result.detach().clone() if isinstance(result, Tensor) else result
