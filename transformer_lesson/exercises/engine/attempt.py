"""Running a learner's function so that nothing it does can break the notebook."""

import dis
import inspect
import io
import re
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.specification import Tried

LONGEST = 1000  # characters quoted from a learner's output or exception
RAISED = "Your function raised"  # how a message about an exception begins

SWITCHED = """Your function leaves gradients switched off: what is trained after it learns nothing.
`with torch.no_grad():` switches them on again at its end, or `@torch.no_grad()` above the `def`."""

FOREIGN = (  # folders whose code is not the learner's
    str(Path(__file__).resolve().parents[2]),
    *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
)


class Failed(Exception):
    """The answer is wrong; the exception's text is for the learner.

    Args:
        text: what is wrong.
        mistake: the mistake's name, if it has one.
    """

    def __init__(self, text: str, mistake: str | None = None):
        super().__init__(text)
        self.mistake = mistake


class NotAttempted(Exception):
    """The stub is unchanged."""


class Outcome(NamedTuple):
    """What a call returned or raised, and its arguments afterwards.

    `raised` is the exception's type. PyTorch raises little but `RuntimeError`, so there the
    beginning of the message is added, without its numbers.

    Function arguments are left out: each call gets its own.
    """

    result: Any
    raised: str | None
    inputs: tuple


class Excerpt(io.TextIOBase):
    """Replaces standard output and keeps only the beginning of what is printed."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def write(self, text: str) -> int:
        """Append as much as fits."""
        self.text += text[: LONGEST - len(self.text)]
        return len(text)


def is_blank(answer: Callable) -> bool:
    """Return whether a function's body is only a docstring, `...` or `pass`.

    All of these compile to `return None` and nothing else.
    """
    if not inspect.isfunction(answer):
        return False
    names = {step.opname for step in dis.get_instructions(answer)}
    constants = set(map(repr, answer.__code__.co_consts))
    harmless = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return names <= harmless and constants <= {repr(None), repr(answer.__doc__)}


def call(answer: Callable, inputs: tuple) -> Any:
    """Return answer(*inputs).

    Warnings are suppressed: the check reports what is wrong, in its own words. Gradients are
    switched back to what they were.

    Raises:
        NotAttempted: the answer is a stub that raises `NotImplementedError`.
        Failed: the answer raised anything else, including `SystemExit`, or left gradients switched
            otherwise, or its trial cannot use what it returned. Only the interrupt button's
            `KeyboardInterrupt` passes through.
    """
    switched_on = torch.is_grad_enabled()
    try:
        with warnings.catch_warnings(), torch.set_grad_enabled(switched_on):
            warnings.simplefilter("ignore")
            result = answer(*inputs)
            if torch.is_grad_enabled() != switched_on:
                raise Failed(SWITCHED, "gradients switched off for all that follows")
            return result
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        function = answer.args[0] if isinstance(answer, Tried) else answer
        names = function.__code__.co_names if inspect.isfunction(function) else ()
        if type(error) is NotImplementedError and "NotImplementedError" in names:
            raise NotAttempted from error
        raise Failed(_explain(error), getattr(error, "mistake", None)) from error


def _explain(error: BaseException) -> str:
    """Return the exception and the learner's lines in its traceback, or a trial's message."""
    if isinstance(error, Failed):
        return str(error)
    raised = " ".join("".join(traceback.format_exception_only(error)).split())[:LONGEST]
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if not frame.filename.startswith(FOREIGN)]
    lines = [f"line {frame.lineno}, in {frame.name}: {frame.line}" for frame in own_frames[-5:]]
    return "\n".join([f"{RAISED} {raised}", *lines])


def outcome(answer: Callable, inputs: tuple) -> Outcome:
    """Call an answer; return its result or exception, and its inputs afterwards."""
    result = raised = None
    try:
        result = _copied(call(answer, inputs))
    except Failed as failure:
        raised = type(failure.__cause__).__name__
        if raised == "RuntimeError":
            raised += re.sub(r"\d+", "", str(failure.__cause__))[:30]
    return Outcome(result, raised, tuple(value for value in inputs if not callable(value)))


def _copied(result: Any) -> Any:
    """Copy a result: the answer may write into its tensors later."""
    if isinstance(result, tuple | list):
        return [_copied(part) for part in result]
    if isinstance(result, Tensor) and result.ndim == 0 and result.is_cpu:
        return result.item()  # a number in a tensor is a number
    return result.detach().clone() if isinstance(result, Tensor) else result
