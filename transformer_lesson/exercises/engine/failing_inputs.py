"""The inputs an answer is limited to: what distinguishes the draws on which it raises."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.engine.attempt import Failed, Outcome, call
from transformer_lesson.exercises.engine.compare import named_shape
from transformer_lesson.exercises.engine.examples import argument_names
from transformer_lesson.exercises.engine.specification import Draw, Exercise
from transformer_lesson.exercises.engine.wording import Turn


def find_limit(exercise: Exercise, outcomes: list[Outcome]) -> Turn | None:
    """Return the limitation that explains on which draws an answer raises; `None` if none does.

    The answer must raise on every draw beyond the limit and on no other.
    """
    raised = {n for n, outcome in enumerate(outcomes) if outcome.raised}
    if not raised or len(raised) == len(outcomes):
        return None
    draws = [exercise.make_inputs(Draw(number)) for number in range(len(outcomes))]
    for place, name in enumerate(argument_names(exercise)[: min(map(len, draws))]):
        values = [inputs[place] for inputs in draws]
        for turn, fits in _limits(name, values, set(range(len(outcomes))) - raised):
            if {n for n, value in enumerate(values) if not fits(value)} == raised:
                return turn
    return None


def _limits(name: str, values: list[Any], come_through: set[int]):
    """Yield an argument's possible limits, each with a test of whether a value is within."""
    counts = {
        value.ndim for n, value in enumerate(values) if n in come_through and torch.is_tensor(value)
    }
    if len(counts) == 1:
        (count,) = counts
        mistake = f"code for exactly {count} {'axis' if count == 1 else 'axes'} of `{name}`"
        why = (
            f"With {count} it runs, with any other number it raises an error. Count axes from the "
            "end: -1 and -2 are the last two, however many stand in front; so do `@`, `.mT` and an "
            "einsum with `...`."
        )
        yield Turn(mistake, why), lambda x: not torch.is_tensor(x) or x.ndim == count
    if any(value is None for value in values):
        mistake = f"a `{name}` that is taken for given"
        yield Turn(mistake, "It may be `None`, and then your code raises an error."), _is_given
        why = f"It runs only if `{name}` is `None`. What does it do with one that is given?"
        yield Turn(f"a `{name}` that can't be used", why), lambda x: x is None


def _is_given(value: Any) -> bool:
    return value is not None


def what_failed(answer: Callable, inputs: tuple, sizes: Mapping[str, int]) -> str:
    """Say which PyTorch function raised and the shapes it got.

    "" if none did, or if it got fewer than two tensors.
    """
    with _Watch() as watch:
        try:
            call(answer, inputs)
        except Failed:
            shapes = [named_shape(tensor.shape, sizes) for tensor in watch.got]
            if len(shapes) > 1:
                return f"There `{watch.name}` got {', '.join(shapes[:-1])} and {shapes[-1]}."
    return ""


class _Watch(TorchFunctionMode):
    """Records the arguments of the last function that raised."""

    name: str = ""
    got: tuple[Tensor, ...] = ()

    def __torch_function__(self, function, types, arguments=(), options=None) -> Any:
        try:
            return function(*arguments, **(options or {}))
        except BaseException:
            self.name = OPERATORS.get(function.__name__, function.__name__)
            self.got = tuple(argument for argument in arguments if isinstance(argument, Tensor))
            raise


OPERATORS = {
    "__matmul__": "@",
    "__rmatmul__": "@",
    "__add__": "+",
    "__radd__": "+",
    "__sub__": "-",
    "__mul__": "*",
    "__rmul__": "*",
    "__truediv__": "/",
    "__and__": "&",
    "__or__": "|",
}
