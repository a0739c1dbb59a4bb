"""Checking a learner's function: the first failure, explained in words.

Two layers: `run_checks` finds the first failure, `check_and_diagnose` also explains it; `check`
adds a time limit and stores what passed.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import (
    RAISED,
    Excerpt,
    Failed,
    NotAttempted,
    call,
    is_blank,
)
from transformer_lesson.exercises.engine.behavior import explain_by_behavior
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.choosing import turns
from transformer_lesson.exercises.engine.collection import collect
from transformer_lesson.exercises.engine.compare import (
    NotANumber,
    as_parts,
    match_form,
    plain,
    same,
)
from transformer_lesson.exercises.engine.examples import (
    argument_names,
    describe_inputs,
    smallest_example,
)
from transformer_lesson.exercises.engine.explanation import explain, explain_error
from transformer_lesson.exercises.engine.last_cell import not_the_last_one
from transformer_lesson.exercises.engine.not_a_number import first_nan
from transformer_lesson.exercises.engine.precision import (
    DOUBLE_ONLY,
    comes_back_single,
    in_precision,
    is_double,
    is_half,
    only_double,
    only_single,
    other_dtype,
)
from transformer_lesson.exercises.engine.progress import remember
from transformer_lesson.exercises.engine.reports import Folded, Report, preformatted
from transformer_lesson.exercises.engine.specification import Draw, Exercise, Invariant
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)

QUOTED = 10  # lines of what an answer prints


def check(name: str, answer: Any) -> Report:
    """Check a learner's function and report the first thing that is wrong with it.

    In this order: does it run; type, dtype and shape; are its inputs unchanged; rules that every
    right result obeys; equality with the package's own function on random draws. A failure is
    compared with the known mistakes. A wrong answer never raises here, its prints are quoted in
    the report, and it is stopped after 10 seconds of computing. A passed exercise counts in
    `progress()`. If a later version of the function failed to be defined, the report begins by
    saying so.

    Args:
        name: the exercise, such as "split_heads".
        answer: the learner's function itself, not its result.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = find(name)
    if not callable(answer):
        return Report(
            name, "failed", f'Pass the function itself, not a call of it: check("{name}", {name}).'
        )
    earlier = not_the_last_one(name, answer)
    if is_blank(answer):
        return Report(name, "not attempted", earlier)
    printed = Excerpt()
    with contextlib.redirect_stdout(printed), torch.random.fork_rng(devices=[]), one_thread():
        exercise.tried_reference()(*exercise.make_inputs(Draw(0)))  # import everything first
        try:
            report = run_for_at_most(ANSWER_SECONDS, lambda: _report_of_checks(exercise, answer))
        except TookTooLong:
            report = Report(name, "failed", ENDLESS)
        with contextlib.suppress(TookTooLong):  # then without a diagnosis
            failing = report
            report = run_for_at_most(
                ANSWER_SECONDS, lambda: _add_diagnosis(exercise, answer, failing)
            )
    if report.status == "passed":
        remember("passed", name, True)
        report = replace(report, message=report.message + _kept(exercise, answer))
    message = "\n".join(filter(None, [earlier, report.message]))
    return replace(report, message=message + _quote(printed))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: for tensors this small, several threads are slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


ENDLESS = f"""Your function did not end within {ANSWER_SECONDS:.0f} seconds and was stopped.
Which loop does not end? Print what it counts, or what it waits for."""


def _kept(exercise: Exercise, answer: Callable) -> str:
    """Collect a passed answer and return the line that says so."""

    def work() -> str:
        dtype = other_dtype(exercise, answer)
        return collect(exercise.name, answer, why_not_yours, dtype)

    with contextlib.redirect_stdout(Excerpt()), torch.random.fork_rng(devices=[]), one_thread():
        try:
            sentence = run_for_at_most(ANSWER_SECONDS, work)
        except TookTooLong:
            sentence = "It passed but was not collected: outside the notebook it never ends."
    return f"\n{sentence}" if sentence else ""


def check_and_diagnose(exercise: Exercise, answer: Callable) -> Report:
    """Return the report on an answer, with no time limit and nothing stored."""
    return _add_diagnosis(exercise, answer, _report_of_checks(exercise, answer))


def _report_of_checks(exercise: Exercise, answer: Callable) -> Report:
    """Run the checks and report the first failure, without a diagnosis."""
    try:
        failure, remark = _check_all_draws(exercise, answer)
    except NotAttempted:
        return Report(exercise.name, "not attempted")
    if failure is not None:
        return Report(exercise.name, "failed", str(failure), failure.mistake)
    equal = f"Equal to the package's own on {exercise.draws} random draws."
    passed = exercise.passes or equal
    passed += f"\n{remark}" if remark else ""
    ways = (
        f"How else could it go? {len(turns(exercise.marked))} ways to fail, each with an example:"
    )
    request = (
        f'`from transformer_lesson.exercises import ways_to_fail; ways_to_fail("{exercise.name}")`'
    )
    return Report(exercise.name, "passed", f"{passed}\n{ways}\n{request}")


def _add_diagnosis(exercise: Exercise, answer: Callable, report: Report) -> Report:
    """Return a report with the explanation of its failure, if any, in front."""
    failure = report.message
    if report.status != "failed" or failure.startswith((ENDLESS, DOUBLE_ONLY)):
        return report
    explanation = explain(exercise, answer, failure)
    if explanation is None and failure.startswith(RAISED):
        explanation = explain_error(failure)
    elif explanation is None and not failure.startswith((CHANGES, TWICE)):
        explanation = explain_by_behavior(exercise, exercise.tried(answer))
    if explanation is None:
        return report
    fold = partial(Folded, LINES, preformatted(explanation.lines)) if explanation.lines else None
    message = f"{explanation.text}\n{failure}"
    return Report(exercise.name, "failed", message, explanation.mistake, fold, explanation.text)


VALUES = "Type and shape are right, the values are not."
LENGTH = "The type is right, the length is not."
CHANGES, IN_PLACE = "Your function changes its argument", "an argument changed in place"
TWICE = "Called twice"  # how a rule's sentence begins that tells what is random
ONCE = "The same inputs gave another result this time."
LINES = "Our lines: with − the way that gives what yours gives, with + the right way"


def run_checks(exercise: Exercise, answer: Callable) -> str | None:
    """Run all checks; return the first failure in words, or `None` if the answer is right.

    Raises:
        NotAttempted: the answer is a stub that raises `NotImplementedError`.
    """
    failure = _check_all_draws(exercise, answer)[0]
    return None if failure is None else str(failure)


def _check_all_draws(exercise: Exercise, answer: Callable) -> tuple[Failed | None, str]:
    """Return the first failure on any draw, or `None` and a remark ("" if there is none).

    An answer that raises in double precision but is right in single passes with a remark.
    """
    remark, answer = "", exercise.tried(answer)
    for draw in map(Draw, range(exercise.draws)):
        failure, remark_on_draw = _failure_on_draw(exercise, answer, draw)
        if failure and str(failure).startswith(RAISED):
            if not is_double(exercise.make_inputs(Draw(draw.number))):
                return _with_what_is_right(exercise, answer, draw, failure), ""
            single = in_precision(exercise, torch.float32)
            if not _failure_on_draw(single, answer, Draw(draw.number))[0]:
                failure, remark_on_draw = None, only_single(exercise, answer, draw, str(failure))
        if failure:
            return failure, ""
        remark = remark_on_draw or remark
    return None, remark


def _with_what_is_right(
    exercise: Exercise, answer: Callable, draw: Draw, failure: Failed
) -> Failed:
    """Return the failure, adding that all is right in double precision if so."""
    draws = [exercise.make_inputs(Draw(number)) for number in range(exercise.draws)]
    if is_half(draws[draw.number]) or not any(map(is_double, draws)):
        return failure  # precision is the exercise's topic, or does not apply
    double = in_precision(exercise, torch.float64)
    if any(_failure_on_draw(double, answer, Draw(number))[0] for number in range(exercise.draws)):
        return failure
    return Failed(only_double(exercise, answer, draw, str(failure)))


def _failure_on_draw(exercise: Exercise, answer: Callable, draw: Draw) -> tuple[Failed | None, str]:
    """Return the failure on one draw, or `None` and a remark ("" if there is none)."""
    try:
        return None, _check_draw(exercise, answer, draw)
    except Failed as failure:
        return failure, ""


def why_not_yours(name: str, collected: object) -> str | None:
    """Return why a function in a learner's file cannot be used; `None` if it passes.

    The file may have been edited by hand.
    """
    if not callable(collected):
        return f"the function `{name}` is gone"
    try:
        return run_checks(find(name), collected)
    except NotAttempted:
        return "it is a stub again"


def _quote(printed: Excerpt) -> str:
    lines = printed.text.rstrip().splitlines()
    more = ["…"] if len(lines) > QUOTED else []
    return "\n".join(["\nYour function printed:", *lines[:QUOTED], *more]) if lines else ""


def _check_draw(exercise: Exercise, answer: Callable, draw: Draw) -> str:
    """Raise `Failed` with the first failure on one draw; return a remark, or ""."""
    inputs, fresh = exercise.make_inputs(draw), exercise.make_inputs(Draw(draw.number))
    expected = as_parts(exercise.tried_reference()(*fresh), exercise.returns)
    try:
        yours = _in_form(exercise, answer, inputs, draw)
    except Failed as failure:
        origin = first_nan(answer, fresh) if isinstance(failure, NotANumber) else None
        arose = f"\nThe first one comes from {origin.cause}." if origin and origin.cause else ""
        arose += f"\nThe first one arose on {origin.line}" if origin and origin.line else ""
        description = describe_inputs(exercise, fresh, draw)
        raise Failed(
            f"{failure}{arose}\nIt was called with: {description}.", failure.mistake
        ) from failure
    _check_untouched(exercise, inputs, fresh)
    for rule in exercise.invariants:
        broken = rule(_formed_for(rule, exercise, answer, draw), inputs, *yours)
        if broken:
            if hasattr(rule, "of_many_calls"):  # no single example shows it
                raise Failed(broken, rule.mistake)
            breach = partial(_broken, exercise, answer, rule)
            raise Failed(smallest_example(exercise, answer, draw, breach) or broken, rule.mistake)
    if not all(map(same, expected, yours)):
        example = smallest_example(exercise, answer, draw) or ONCE
        raise Failed(f"{LENGTH if 'The length must be' in example else VALUES}\n{example}")
    return comes_back_single(exercise, answer, draw, expected, yours) if is_double(fresh) else ""


def _broken(exercise: Exercise, answer: Callable, rule: Invariant, draw: Draw) -> str | None:
    """Return how an answer breaks a rule on a draw; `None` if it keeps it there."""
    inputs, fresh = (
        exercise.make_inputs(same_draw) for same_draw in (draw, Draw(draw.number, draw.small))
    )
    yours = _in_form(exercise, answer, inputs, draw)
    return rule(_formed_for(rule, exercise, answer, draw), fresh, *yours)


def _in_form(exercise: Exercise, answer: Callable, inputs: tuple, draw: Draw) -> list:
    """Return an answer's results in the form of ours; raise `Failed` where it is another."""
    fresh = exercise.make_inputs(Draw(draw.number, draw.small))
    expected = as_parts(exercise.tried_reference()(*fresh), exercise.returns)
    parts = as_parts(call(answer, inputs), exercise.returns)
    pairs = zip(exercise.returns, expected, parts, strict=True)
    return [match_form(name, right, mine, draw.sizes) for name, right, mine in pairs]


def _formed_for(rule: Invariant, exercise: Exercise, answer: Callable, draw: Draw) -> Callable:
    """Return the answer with its results brought into the form of ours, for a rule to call.

    So no rule meets a list instead of a tensor, or strides that it cannot view. A result keeps its
    graph if the rule passes a tensor that requires a gradient.
    """

    def formed(*arguments: Any) -> Any:
        """Return the answer's result."""
        expected = as_parts(exercise.tried_reference()(*arguments), exercise.returns)
        parts = as_parts(call(answer, arguments), exercise.returns)
        pairs = zip(exercise.returns, expected, parts, strict=True)
        ready = [match_form(name, right, mine, draw.sizes) for name, right, mine in pairs]
        if any(isinstance(value, Tensor) and value.requires_grad for value in arguments):
            ready = [plain(value) if isinstance(value, Tensor) else value for value in parts]
        return ready[0] if len(ready) == 1 else ready

    if hasattr(rule, "looks_inside"):
        return lambda *arguments: call(answer, arguments)
    return formed


def _check_untouched(exercise: Exercise, inputs: tuple, fresh: tuple) -> None:
    """Raise `Failed` if the answer changed an argument; `fresh` is the same draw, unused."""
    for name, after, before in zip(argument_names(exercise), inputs, fresh, strict=False):
        if not callable(before) and not same(before, after, relative=0.0, absolute=0.0):
            raise Failed(
                f"{CHANGES} `{name}`. Compute a new value instead: "
                "an in-place step (x += 1, x[0] = 1, x.add_(1)) also changes it for the caller.",
                IN_PLACE,
            )
