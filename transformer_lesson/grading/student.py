"""The process that holds one student's functions and calls them when the judge asks.

It is started by `judge`, and talks over its standard input and output, which the student's code
gets replaced by nothing. Whatever that code does here, only data leave.
"""

import ast
import os
import sys
from contextlib import nullcontext
from io import BufferedIOBase
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.attempt import is_untouched
from transformer_lesson.exercises.bug_hunt.rules import OperationCounter
from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.specification import Draw
from transformer_lesson.grading.sandbox import limit_this_process
from transformer_lesson.grading.slices import FILE, slice_for
from transformer_lesson.grading.wire import Packer, Unpacker, receive, send

LONGEST = 500  # characters of an exception's text
LARGEST = 2**28  # bytes of a message; the largest is a whole notebook


class Student:
    """Answers the judge's messages with what the functions in the notebook's cells give."""

    def __init__(self):
        self.cells: list[str] = []
        self.answer: Any = None
        self.drawn: dict[int, tuple] = {}
        self.leaves: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def open(self, message: dict, tensors: dict) -> tuple[dict, dict]:
        """Take the notebook's cells."""
        self.cells = message["cells"]
        return {"state": "open"}, {}

    def load(self, message: dict, tensors: dict) -> tuple[dict, dict]:
        """Run what one function needs; say whether it is there, and whether it was touched."""
        name = message["name"]
        names = {"__name__": "__main__"}
        try:
            statements = slice_for(name, self.cells)
            if not statements:
                return {"state": "missing"}, {}
            for statement in statements:  # one by one, as compiled together they differ
                exec(compile(ast.Module([statement], []), FILE, "exec"), names)
        except BaseException as error:
            return {"state": "raised", **_told(error)}, {}
        self.answer, self.drawn = names.get(name), {}
        if not callable(self.answer):
            return {"state": "missing"}, {}
        blank = is_untouched(self.answer, find(name).load_start())
        self.name = name
        return {"state": "blank" if blank else "ready"}, {}

    def call(self, message: dict, tensors: dict) -> tuple[dict, dict]:
        """Call the function; return its result and its arguments as it left them."""
        unpacker, packer = Unpacker(tensors, self._find), Packer()
        arguments = unpacker.unpack(message["arguments"])
        for tensor in unpacker.differentiable:
            tensor.requires_grad_()
        modules = [value for value in arguments if isinstance(value, nn.Module)]
        parameters = [parameter for module in modules for parameter in module.parameters()]
        self.leaves = [*unpacker.differentiable, *parameters]
        counter = OperationCounter() if message["count"] else nullcontext()
        reply = {}
        with torch.set_grad_enabled(message["gradient"]):
            try:
                with counter:
                    result = self.answer(*arguments)
                reply["result"] = packer.pack(result)
                self.outputs = list(packer.differentiable)
            except BaseException as error:
                code = getattr(self.answer, "__code__", None)
                own = "NotImplementedError" in getattr(code, "co_names", ())
                reply = {**_told(error), "stub": own and type(error) is NotImplementedError}
        reply |= {"after": packer.pack(arguments), "operations": getattr(counter, "count", 0)}
        return reply, packer.tensors

    def backward(self, message: dict, tensors: dict) -> tuple[dict, dict]:
        """Return the gradients of the last call's inputs, given those of its results."""
        given = Unpacker(tensors).unpack(message["gradients"])
        gradients = torch.autograd.grad(
            self.outputs, self.leaves, given, retain_graph=True, allow_unused=True
        )
        packer = Packer()
        return {"gradients": packer.pack(list(gradients))}, packer.tensors

    def _find(self, place: list | str) -> Any:
        """Return an argument that is no plain data, made here anew, or a function of PyTorch."""
        if isinstance(place, str):
            return getattr(torch, place)
        serial, number, small, index = place
        if serial not in self.drawn:
            self.drawn[serial] = find(self.name).make_inputs(Draw(number, tuple(small)))
        return self.drawn[serial][index]


def _told(error: BaseException) -> dict:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return {"raised": type(error).__name__, "text": str(text)[:LONGEST]}


def _keep_channel() -> tuple[BufferedIOBase, BufferedIOBase]:
    """Return the judge's two pipes; standard input and output lead nowhere from now on."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return source, sink


def main() -> None:
    """Answer messages until the judge closes the pipe or ends this process."""
    source, sink = _keep_channel()
    limit_this_process()
    student = Student()
    actions = {
        action.__name__: action
        for action in (student.open, student.load, student.call, student.backward)
    }
    while True:
        message, tensors = receive(source, LARGEST)
        send(sink, *actions[message["do"]](message, tensors))


if __name__ == "__main__":
    sys.exit(main())
