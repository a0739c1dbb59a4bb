"""If a learner's function fails while a model runs, ours replaces it, and a sentence says so.

A function that passes its check may still raise, not end, or return another type on inputs that no
check draws. The model then continues with ours, which returns what the function should have.
"""

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from transformer_lesson.exercises.engine.attempt import FOREIGN
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.files import printable

Tell = Callable[[str, str], None]
"""Receives a function's name and why ours replaces it."""
LONGEST = 200  # characters quoted from an exception


def with_fallback(
    name: str, yours: Callable, ours: Callable, tell: Tell, tensors: int = 0
) -> Callable:
    """Return a function that calls yours and, once that has failed, ours.

    Args:
        name: passed to `tell`, with the reason, when yours first fails.
        yours, ours: with the same arguments.
        tell: stores or shows that ours replaces yours.
        tensors: how many tensors a part of the forward pass must return; it is called by our code
            as its stub says, so a call that does not fit is its fault. 0 for other functions: a
            call that does not fit raises, because it is the caller's fault.
    """
    failed = False

    @functools.wraps(yours)
    def either(*arguments, **named):
        """Return the result of yours, or of ours once yours has failed."""
        nonlocal failed
        if not failed:
            try:
                result = yours(*arguments, **named)
                if not tensors:
                    return result
                if _are_tensors(result, tensors):
                    return _as_precise_as(arguments, result)
                why = f"yours returned {_kind(result)}"
            except Exception as error:
                if not tensors and not reaches(error, yours):
                    raise
                why = what_went_wrong(error)
            failed = True
            tell(name, why)
        return ours(*arguments, **named)

    return either


def what_went_wrong(error: Exception) -> str:
    """Return the exception, and the learner's function and line that raised it."""
    raised = " ".join("".join(traceback.format_exception_only(error)).split())
    raised = printable(raised, LONGEST)
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if not frame.filename.startswith(FOREIGN)]
    if not own_frames:
        return f"with your functions, it raised {raised}"
    file = Path(own_frames[-1].filename)
    place = f"{FOLDER}/{file.name}" if file.parent.name == FOLDER else "its cell"
    return f"`{own_frames[-1].name}` raised {raised} in line {own_frames[-1].lineno} of {place}"


def reaches(error: BaseException, function: Callable) -> bool:
    """Return whether an error was raised inside a function, not by calling it wrongly."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    trace = error.__traceback__
    while trace is not None:
        if code is None or trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _are_tensors(result: object, count: int) -> bool:
    if count == 1:
        return isinstance(result, Tensor)
    several = isinstance(result, tuple | list) and len(result) == count
    return several and all(isinstance(item, Tensor) for item in result)


def _as_precise_as(arguments: tuple, result: Tensor | tuple | list) -> Tensor | tuple:
    """Return tensors in the precision of the first floating-point argument, as weights need.

    A check accepts double precision where single is asked for.
    """
    floats = (
        argument
        for argument in arguments
        if isinstance(argument, Tensor) and argument.is_floating_point()
    )
    if (first := next(floats, None)) is None:
        return result
    if isinstance(result, Tensor):
        return result.to(first.dtype) if result.is_floating_point() else result
    return tuple(_as_precise_as(arguments, item) for item in result)


def _kind(result: object) -> str:
    if isinstance(result, tuple | list):
        return f"a {type(result).__name__} of {len(result)}"
    return "None" if result is None else f"a {type(result).__name__}"
