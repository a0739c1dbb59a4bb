"""The process in which a student's functions run: it checks them and records every call.

It reads one request from standard input and writes one line of JSON per exercise. For the student's
code, standard input, output and error are closed off.
"""

import ast
import json
import os
import sys
from contextlib import suppress
from typing import Any

from transformer_lesson.exercises.engine.attempt import is_blank
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.grading.imported import Watch
from transformer_lesson.grading.judge import judged
from transformer_lesson.grading.record import Recorder, told
from transformer_lesson.grading.sandbox import limit_this_process
from transformer_lesson.grading.slices import FILE, slice_for


def record(name: str, cells: list[str], seed: int) -> dict[str, Any]:
    """Run what one exercise needs of a notebook's cells, then its check; return its calls."""
    names, watch = {"__name__": "__main__", "display": print}, Watch(find(name))
    try:
        for statement in slice_for(name, cells):  # one by one: compiled together they differ
            code = compile(ast.Module([statement], []), FILE, "exec")
            with watch.watching(code), suppress(*_may_be_missing(statement)):
                exec(code, names)
    except BaseException as error:  # SystemExit too
        if watch.saw_ours:
            return {"name": name, "state": "imported"}
        return {"name": name, "state": "raised", **told(error)}
    answer = names.get(name)
    if not callable(answer):
        return {"name": name, "state": "missing"}
    if is_blank(answer):
        return {"name": name, "state": "blank"}
    recorder = Recorder(watch.watched(answer))
    with suppress(BaseException):  # the judge decides by itself
        judged(name, seed, recorder.take)
    if watch.saw_ours:
        return {"name": name, "state": "imported"}
    stub = "NotImplementedError" in getattr(getattr(answer, "__code__", None), "co_names", ())
    if stub and any(call.get("raised") == "NotImplementedError" for call in recorder.calls):
        return {"name": name, "state": "blank"}
    return {"name": name, "state": "called", "calls": recorder.calls}


def _may_be_missing(statement: ast.stmt) -> list[type[Exception]]:
    """Return the exceptions to ignore: `from solution import *` may lack a file not handed in."""
    star = isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"
    return [ImportError] if star else []


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    nothing, sink = os.open(os.devnull, os.O_RDWR), os.fdopen(os.dup(1), "wb")
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    limit_this_process()
    sink.write(b"started\n")
    sink.flush()
    for name in request["names"]:
        line = json.dumps(record(name, request["cells"], request["seed"]))
        sink.write(line.encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    main()
