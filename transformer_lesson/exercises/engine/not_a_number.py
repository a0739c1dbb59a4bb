"""Finding the line of an answer in which a NaN first arises, and its cause."""

import linecache
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.engine.attempt import FOREIGN, Failed, call
from transformer_lesson.exercises.engine.compare import is_readable


class Origin(NamedTuple):
    """Where a NaN arises.

    Args:
        line: of the learner's code, with its number; "" if unknown.
        cause: a noun phrase; "" if unknown.
    """

    line: str
    cause: str


def first_nan(answer: Callable, inputs: tuple) -> Origin | None:
    """Return where PyTorch first turns numbers into a NaN, if it does."""
    with _Watch() as watch:
        try:
            call(answer, inputs)
        except Failed:
            return None
    return watch.origin


class _Watch(TorchFunctionMode):
    """Records the first operation whose result has a NaN."""

    origin: Origin | None = None

    def __torch_function__(self, function, types, arguments=(), options=None) -> Any:
        before = [
            argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments
        ]
        result = function(*arguments, **(options or {}))
        if self.origin is None and has_nan(result):
            name = getattr(function, "__name__", "").strip("_")
            self.origin = Origin(_own_line(), _cause(name, before, options or {}))
        return result


def has_nan(value: Any) -> bool:
    """Return whether a tensor, or a list of them, has a NaN."""
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    return is_readable(value) and bool(value.isnan().any())


def _cause(name: str, arguments: list, options: dict) -> str:
    """Return why an operation gives a NaN; "" if its numbers do not tell."""
    numbers = [
        torch.as_tensor(argument)
        for argument in arguments
        if isinstance(argument, Tensor | int | float)
    ]
    if not numbers or any(map(has_nan, numbers)):
        return ""
    first = numbers[0]
    if name in ("softmax", "log_softmax", "logsumexp"):
        dim = options.get("dim", arguments[1] if len(arguments) > 1 else -1)
        if bool((first == math.inf).any()):
            return "a softmax of plus infinity"
        if isinstance(dim, int) and bool((first == -math.inf).all(dim).any()):
            return "a softmax over nothing but minus infinity"
    if name in ("sqrt", "rsqrt", "pow") and bool((first < 0).any()):
        return "the root of a negative number"
    if name in ("log", "log2", "log10", "log1p") and bool((first < 0).any()):
        return "the logarithm of a negative number"
    if len(numbers) < 2 or name not in PAIRS:
        return "the mean of nothing" if name in ("mean", "var", "std") else ""
    left, right = torch.broadcast_tensors(*numbers[:2])
    return next((words for words, applies in PAIRS[name] if bool(applies(left, right).any())), "")


PAIRS: dict[str, list] = {
    "truediv": [
        ("0 divided by 0", lambda x, y: (x == 0) & (y == 0)),
        ("infinity divided by infinity", lambda x, y: x.isinf() & y.isinf()),
    ],
    "mul": [("0 times infinity", lambda x, y: (x.isinf() & (y == 0)) | ((x == 0) & y.isinf()))],
    "sub": [("infinity minus infinity", lambda x, y: x.isinf() & (x == y))],
    "add": [("infinity minus infinity", lambda x, y: x.isinf() & (x == -y))],
}
PAIRS |= {"div": PAIRS["truediv"], "rmul": PAIRS["mul"], "rsub": PAIRS["sub"]}


def _own_line() -> str:
    """Return the innermost running line of the learner's own code; "" if there is none."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(FOREIGN):
        frame = frame.f_back
    if frame is None:
        return ""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"line {frame.f_lineno}, in {frame.f_code.co_name}: {line}"
