"""Finding the line of an answer in which a NaN first arises."""

import linecache
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.engine.attempt import FOREIGN, Failed, call


def first_nan(answer: Callable, inputs: tuple) -> str | None:
    """Return the learner's line in which PyTorch first makes a NaN of numbers, if it makes one."""
    with _Watch() as watch:
        try:
            call(answer, inputs)
        except Failed:
            return None
    return watch.line


class _Watch(TorchFunctionMode):
    """Notes the line of the first operation whose result has a NaN."""

    line: str | None = None

    def __torch_function__(self, function, types, arguments=(), options=None) -> Any:
        result = function(*arguments, **(options or {}))
        if self.line is None and _has_nan(result):
            self.line = _own_line()
        return result


def _has_nan(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_nan, value))
    return isinstance(value, Tensor) and bool(value.isnan().any())


def _own_line() -> str | None:
    """Return the innermost line that is being run and is the learner's own."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(FOREIGN):
        frame = frame.f_back
    if frame is None:
        return None
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"line {frame.f_lineno}, in {frame.f_code.co_name}: {line}"
