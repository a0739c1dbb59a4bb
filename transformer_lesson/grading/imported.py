"""Whether a student's function is the package's own, or calls it, under any name.

While a student's code runs, our answers' code is replaced by a trap, so calling one, wrapping it
or taking its code or source gives the trap. Code from outside the cells (executed strings, reloaded
modules, code objects put into functions) is compared with ours. An answer typed into a cell is the
student's own, even if it equals ours.
"""

import dis
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from transformer_lesson.exercises.engine import choosing, hints
from transformer_lesson.exercises.engine.specification import Exercise
from transformer_lesson.exercises.program import sources

STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}
GIVE_OURS = choosing.variant, hints.solution, hints.solution_code
PACKAGE = re.compile(r"transformer_lesson[.\s]")  # in a command, not a folder of that name
_watches: list["Watch"] = []  # the active ones


def _trap(*arguments: Any, **named: Any) -> None:
    """Replace one of our answers; the code may not use this module's names."""
    from transformer_lesson.grading.imported import caught

    caught()


def caught() -> None:
    """Note that one of our answers was called, and give no result."""
    for watch in _watches:
        watch.saw_ours = True
    raise RuntimeError("This is the package's own answer.")


class Watch:
    """Records in `saw_ours` whether an exercise's own solution was called, taken or executed."""

    def __init__(self, exercise: Exercise):
        self.saw_ours = False
        self._cell: CodeType | None = None
        ours = exercise.load_reference(), hints.plain_solution(exercise), *GIVE_OURS
        functions = [*filter(None, ours), *choosing.parts(exercise.marked)]
        self._code = {function: function.__code__ for function in map(inspect.unwrap, functions)}
        self._ours = {}
        for code in [*_written(exercise), *self._code.values()]:
            self._ours.setdefault(_size(code), []).append(_steps(code))

    @contextmanager
    def watching(self, cell: CodeType | None = None) -> Iterator[None]:
        """Watch the code that runs in this block; definitions in `cell` are the student's."""
        if self in _watches:
            yield
            return
        self._cell = cell
        for function in self._code:
            function.__code__ = inspect.unwrap(_trap).__code__
        _watches.append(self)
        try:
            yield
        finally:
            _watches.remove(self)
            for function, code in self._code.items():
                function.__code__ = code

    def watched(self, function: Callable) -> Callable:
        """Return a watched version of a function."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self.watching():
                return function(*arguments, **named)

        return call

    def hear(self, event: str, arguments: tuple) -> None:
        """Handle Python's audit events about our answers."""
        if event in ("exec", "function.__new__", "object.__setattr__"):
            code = arguments[-1]
            if inspect.iscode(code) and code is not self._cell:
                self.saw_ours |= any(map(self._is_ours, _nested(code)))
        elif event == "object.__getattr__" and arguments[1] == "__code__":
            self.saw_ours |= any(arguments[0] is function for function in self._code)
        elif event in STARTS and PACKAGE.search(str(arguments[:2])):
            self.saw_ours = True

    def _is_ours(self, code: CodeType) -> bool:
        alike = self._ours.get(_size(code))
        return alike is not None and _steps(code) in alike


def _hear(event: str, arguments: tuple) -> None:
    for watch in _watches:
        watch.hear(event, arguments)


sys.addaudithook(_hear)  # cannot be removed


def _written(exercise: Exercise) -> list[CodeType]:
    """Return our answers' code in every form in which the package stores it."""
    name, marked = exercise.name, exercise.marked
    texts = [choosing.as_written(marked), *filter(None, [sources().get(name)])]
    nested = [code for text in texts for code in _nested(compile(text, "ours", "exec"))]
    return [
        choosing.code(inspect.unwrap(marked)),
        *(code for code in nested if code.co_name == name),
    ]


def _nested(code: CodeType) -> list[CodeType]:
    """Return a code object and all code objects nested in it."""
    return [
        code,
        *(inner for part in filter(inspect.iscode, code.co_consts) for inner in _nested(part)),
    ]


def _size(code: CodeType) -> tuple[int, ...]:
    """Return a fingerprint that is equal for equivalent code and differs for most other code."""
    return code.co_argcount, code.co_nlocals, len(code.co_names)


def _steps(code: CodeType) -> list:
    """Return what code does, independent of variable names and docstrings.

    The bytecode of calls on an imported module depends on whether the import is in the same text.
    """
    by_number, jumps = {*dis.haslocal, *dis.hasfree}, {*dis.hasjrel, *dis.hasjabs}
    steps = []
    for step in dis.get_instructions(code):
        if step.opname not in ("PUSH_NULL", "PRECALL", "NOP", "CACHE"):
            value = step.arg if step.opcode in by_number else _argument(step.argval)
            name = step.opname.replace("LOAD_METHOD", "LOAD_ATTR")
            steps.append((name, None if step.opcode in jumps else value))
    return steps


def _argument(value: Any) -> Any:
    return _steps(value) if inspect.iscode(value) else repr(value)
