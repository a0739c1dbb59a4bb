"""The verdict on a student's functions, from a record of their calls.

The same check runs twice: in the student's process, which records every call of the function, and
here, where the record replaces the function. The student process's own conclusion is discarded.
Inputs and right answers are recomputed here, so a function passes only if its record has the right
answers.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.boss import planted_bugs
from transformer_lesson.exercises.engine import checks
from transformer_lesson.exercises.engine.attempt import NotAttempted, call
from transformer_lesson.exercises.engine.catalog import DEEPER, LESSONS, find
from transformer_lesson.exercises.engine.compare import as_parts, same
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.exercises.engine.specification import (
    Draw,
    Exercise,
    Invariant,
    Tried,
    breaks,
)
from transformer_lesson.exercises.engine.time_limit import TookTooLong, run_for_at_most
from transformer_lesson.exercises.program import FUNCTIONS
from transformer_lesson.grading.record import LONGEST, Player
from transformer_lesson.grading.sandbox import SECONDS, Stopped, answers

GRADIENT = "The gradient that flows back through your function is wrong or missing."
UNSEEN = "It is right on the draws that `check` uses, but wrong on others."
IMPORTED = "It is the package's own function, or calls it: there is no answer here to judge."

Take = Callable[..., Any]


def judged(name: str, seed: int, take: Take) -> Report:
    """Return `check`'s report on a function that is called only through `take`.

    A function that passes is then tried on as many unpredictable draws: a table of the answers to
    `check` does not pass. On rare draws two right functions differ by rounding (if two beams are
    equally likely), so there are three attempts.

    Args:
        name: the exercise.
        seed: of the unpredictable draws.
        take: `Recorder.take` in the student's process, `Player.take` here.
    """
    exercise = find(name)
    answer = Tried(take, exercise.trial or _plainly)
    rules = tuple(_on_record(rule, exercise, take) for rule in exercise.invariants)
    with torch.random.fork_rng(devices=[]):
        report = checks.check_and_diagnose(replace(exercise, invariants=rules), answer)
        attempts = range(3 if report.status == "passed" else 0)
        for attempt in attempts:
            make_inputs = partial(_unseen, exercise, seed + 100 * attempt)
            further = replace(exercise, invariants=(), make_inputs=make_inputs)
            with suppress(NotAttempted):
                if checks.run_checks(further, answer) is None:
                    return report
    return Report(name, "failed", UNSEEN) if attempts else report


def _plainly(function: Callable, *inputs: Any) -> Any:
    return function(*inputs)


def _unseen(exercise: Exercise, seed: int, draw: Draw) -> tuple:
    """Return inputs of the same kind as a draw's, with different sizes and numbers."""
    return exercise.make_inputs(Draw(draw.number, draw.small, seed + draw.number))


def _on_record(rule: Invariant, exercise: Exercise, take: Take) -> Invariant:
    """Return a rule in a form that a record of calls can decide.

    A gradient must equal the right function's. How a function calls its function arguments is only
    judged by its results.
    """

    def same_gradient(answer: Callable, inputs: tuple, *results: Any) -> str | None:
        """Return what is wrong unless the recorded gradient equals the right function's."""
        right = gradient(exercise.load_reference(), *inputs)
        mine = call(partial(take, gradient), inputs)
        nothing = not mine and not any(part is not None and part.any() for part in right)
        return None if nothing or same(right, mine) else GRADIENT

    def same_gradient_if_right(answer: Callable, inputs: tuple, *results: Any) -> str | None:
        right = as_parts(exercise.tried_reference()(*inputs), exercise.returns)
        return same_gradient(answer, inputs) if same(list(results), right) else None

    if hasattr(rule, "looks_inside"):
        return breaks(rule.mistake)(lambda *arguments: None)
    of_gradients = {"any results": same_gradient, "right results": same_gradient_if_right}
    if hasattr(rule, "of_gradients"):
        return breaks(rule.mistake)(of_gradients[rule.of_gradients])
    return rule


def gradient(function: Callable, *inputs: Any) -> list[Tensor | None]:
    """Return the gradient of a weighted sum of function(*inputs), a tensor or several.

    It is with respect to the first input and to all parameters of inputs that are modules.
    """
    first = inputs[0].clone().requires_grad_()
    modules = [value for value in inputs if isinstance(value, nn.Module)]
    leaves = [first, *(parameter for module in modules for parameter in module.parameters())]
    with torch.enable_grad():
        result = function(first, *inputs[1:])
        parts = result if isinstance(result, tuple | list) else [result]
        weights = [torch.arange(part.numel()).cos().view_as(part) for part in parts]
        total = sum((w * part).sum() for w, part in zip(weights, parts, strict=True))
    if not total.requires_grad:
        return []
    return list(torch.autograd.grad(total, leaves, allow_unused=True))


def verdict(name: str, seed: int, line: bytes) -> Report:
    """Return the report on one exercise, from the line that a student's process wrote.

    Raises:
        Stopped: the line is not about this exercise.
    """
    try:
        record = json.loads(line)
        if record["name"] != name:
            raise ValueError(record["name"])
        if record["state"] == "missing":
            return Report(name, "missing", "The notebook does not define this function.")
        if record["state"] == "blank":
            return Report(name, "not attempted")
        if record["state"] == "imported":
            return Report(name, "imported", IMPORTED)
        if record["state"] == "raised":
            reason = f"The cells that it needs raised {record['raised']}: {record['text']}"
            return Report(name, "failed", reason)
        player = Player(record["calls"])
        return run_for_at_most(SECONDS, lambda: judged(name, seed, player.take))
    except TookTooLong as error:  # a million ids, say
        reason = f"Stopped after {SECONDS:.0f} seconds of judging it."
        raise Stopped("timed out", reason) from error
    except Exception as error:  # one student's output must not stop the grading
        reason = f"What its process sent could not be read: {error!r:.{LONGEST}}."
        raise Stopped("crashed", reason) from error


def grade(cells: list[str], lesson: str) -> list[Report]:
    """Return one report per exercise of a lesson. Nothing in the cells can raise here.

    A report's status may also be "missing" (the notebook does not define the function), "imported"
    (it is ours, or calls ours), "timed out" or "crashed".

    Args:
        cells: the sources of a notebook's code cells.
        lesson: two digits, or the name of a notebook behind a lesson.
    """
    return _graded(cells, (LESSONS | DEEPER)[lesson][1:])


def grade_hunt(cells: list[str], seed: int) -> list[Report]:
    """Return a report for each bug of a hunt, and for each function that is no longer right.

    Args:
        cells: the sources of a notebook's code cells.
        seed: the hunt's number.
    """
    sick, reports = dict(planted_bugs(seed)), _graded(cells, FUNCTIONS)
    return [report for report in reports if report.name in sick or report.status != "passed"]


def _graded(cells: list[str], names: tuple[str, ...]) -> list[Report]:
    reports = []
    while len(reports) < len(names):  # a stopped process costs one exercise
        reports += _until_stopped(cells, names[len(reports) :])
    return reports


def _until_stopped(cells: list[str], names: tuple[str, ...]) -> list[Report]:
    # unknown before the notebook is finished, but reproducible
    seed = int(hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:12], base=16)
    reports = []
    with closing(answers({"cells": cells, "names": names, "seed": seed})) as lines:
        try:
            next(lines)  # it has started
            for name in names:
                reports.append(verdict(name, seed, next(lines)))
        except Stopped as stopped:
            reports.append(Report(names[len(reports)], *stopped.args))
    return reports
