"""Judging a student's functions from outside: `check`, with a stand-in for the answer."""

import builtins
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.catalog import LESSONS, find
from transformer_lesson.exercises.checks import verdict
from transformer_lesson.exercises.reports import Report
from transformer_lesson.exercises.specification import Draw, Exercise
from transformer_lesson.grading.process import Process, TimedOut
from transformer_lesson.grading.wire import Broken, Packer, Unpacker

SECONDS = 20.0  # for one exercise


class _Bridge(torch.autograd.Function):
    """Lets a gradient flow back through a call that took place in another process."""

    @staticmethod
    def forward(ctx, back: Callable, values: list[Tensor], *leaves: Tensor):
        ctx.back = back
        return tuple(value.clone() for value in values)

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        return None, None, *ctx.back(gradients)


class StandIn:
    """Calls a student's function in its process; made for one exercise.

    Args:
        process: where the function has been loaded.
        exercise: what it is judged by.
    """

    def __init__(self, process: Process, exercise: Exercise):
        self.process, self._drawn = process, exercise.make_inputs
        self.exercise = replace(exercise, make_inputs=self._make_inputs)
        self._serials, self._places, self._kept = itertools.count(), {}, []

    def _make_inputs(self, draw: Draw) -> tuple:
        """Draw the inputs, and note how the student's process can make the same ones."""
        inputs, serial = self._drawn(draw), next(self._serials)
        self._kept.append(inputs)  # so that no two of them ever have the same id
        for index, value in enumerate(inputs):
            self._places[id(value)] = [serial, draw.number, list(draw.small), index]
        return inputs

    def _refer(self, value: Any) -> list | str | None:
        name = getattr(value, "__name__", "")
        return name if getattr(torch, name, None) is value else self._places.get(id(value))

    def call(self, arguments: tuple, untouched: type[Exception]) -> Any:
        """Return what the student's function returns, or raise what it raises.

        Args:
            arguments: the function's.
            untouched: what to raise where the function is a stub that raises it by itself.
        """
        packer = Packer(self._refer)
        message = {
            "do": "call",
            "arguments": packer.pack(arguments),
            "gradient": torch.is_grad_enabled(),
            "count": torch._C._len_torch_function_stack() > 0,
        }
        reply, tensors = self.process.ask(message, packer.tensors)
        unpacker = Unpacker(tensors)
        result = unpacker.unpack(reply.get("result"))
        outputs = list(unpacker.differentiable)
        _write_back(arguments, unpacker.unpack(reply.get("after")))
        self._count(reply.get("operations"))
        if "raised" in reply:
            raise untouched if reply.get("stub") is True else _error(reply)
        modules = [value for value in arguments if isinstance(value, nn.Module)]
        parameters = [parameter for module in modules for parameter in module.parameters()]
        leaves = [*packer.differentiable, *parameters]
        if not outputs or not leaves or not torch.is_grad_enabled():
            return result
        connected = _Bridge.apply(self._back, outputs, *leaves)
        return _replaced(result, dict(zip(map(id, outputs), connected, strict=True)))

    def _back(self, gradients: tuple[Tensor, ...]) -> list[Tensor | None]:
        packer = Packer()
        message = {"do": "backward", "gradients": packer.pack(list(gradients))}
        reply, tensors = self.process.ask(message, packer.tensors)
        return Unpacker(tensors).unpack(reply.get("gradients"))

    def _count(self, operations: Any) -> None:
        """Call as many functions of PyTorch as the answer did: a rule here counts them."""
        nothing = torch.empty(0)
        for _ in range(min(operations, 10_000) if type(operations) is int else 0):
            nothing.numel()


def _write_back(old: Any, new: Any) -> None:
    """Do to the judge's arguments what the student's function did to its own."""
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if old.dtype == new.dtype and not torch.equal(old, new):
            old.data = new
    elif isinstance(old, tuple) and isinstance(new, tuple):
        for one, other in zip(old, new, strict=False):
            _write_back(one, other)
    elif isinstance(old, list) and isinstance(new, list):
        old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        old.clear()
        old.update(new)


def _replaced(value: Any, table: dict[int, Tensor]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_replaced(part, table) for part in value)
    return table.get(id(value), value)


def _error(reply: dict) -> Exception:
    """Return the exception of that name; only those of Python itself are the real ones."""
    name, text = str(reply["raised"])[:80], str(reply.get("text"))
    known = getattr(builtins, name, None)
    if not (isinstance(known, type) and issubclass(known, Exception)) or "Unicode" in name:
        name = "".join(letter for letter in name if letter.isidentifier()) or "Exception"
        known = type(name, (Exception,), {"__module__": "builtins"})
    elif known is NotImplementedError:  # raised by something that the answer calls
        known = type(name, (Exception,), {"__module__": "builtins"})
    return known(text)


def can_start() -> bool:
    """Return whether a student's process starts here at all, without anything of a student's."""
    process = Process([], SECONDS)
    try:
        process.open([])
    except (TimedOut, Broken):
        return False
    finally:
        process.close()
    return True


def grade(cells: list[str], lesson: str) -> list[Report]:
    """Return one report for each exercise of a lesson. Nothing in the cells can raise here.

    Besides those of `check` a report's status may be "missing" (the notebook does not define the
    function), "timed out" or "crashed".

    Args:
        cells: the sources of a notebook's code cells.
        lesson: two digits.
    """
    reports, process = [], None
    try:
        for name in LESSONS[lesson][1:]:
            process = process or Process(cells, SECONDS)
            reports.append(_graded(process, name))
            if process.fault is not None:
                process.close()
                process = None
    finally:
        if process is not None:
            process.close()
    return reports


def _graded(process: Process, name: str) -> Report:
    try:
        report = _judged(process, name)
    except Exception as error:  # a check that stumbles over strange data must not stop the others
        report = Report(name, "crashed", f"The check could not read the answer: {error!r}")
    if isinstance(process.fault, TimedOut):
        return Report(name, "timed out", str(process.fault))
    if process.fault is not None:
        return Report(name, "crashed", process.how_it_ended())
    return report


def _judged(process: Process, name: str) -> Report:
    loaded = process.load(name)
    if loaded.get("state") == "missing":
        return Report(name, "missing", "The notebook does not define this function.")
    if loaded.get("state") == "blank":
        return Report(name, "not attempted")
    if loaded.get("state") == "raised":
        error = f"{str(loaded.get('raised'))}: {str(loaded.get('text'))}"
        return Report(name, "failed", f"The cells that it needs raised {error}")
    stand_in = StandIn(process, find(name))

    with torch.random.fork_rng(devices=[]):
        # `verdict` looks for the name NotImplementedError in the answer, to tell a stub
        return verdict(
            stand_in.exercise, lambda *arguments: stand_in.call(arguments, NotImplementedError)
        )
