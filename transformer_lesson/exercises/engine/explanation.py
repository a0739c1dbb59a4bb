"""Explaining in words which mistake, or which two, an answer makes."""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from transformer_lesson.exercises.engine.attempt import Outcome, outcome
from transformer_lesson.exercises.engine.choosing import as_written
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.diagnosis import diagnose
from transformer_lesson.exercises.engine.failing_inputs import find_limit, what_failed
from transformer_lesson.exercises.engine.families import Member
from transformer_lesson.exercises.engine.form import limit_of_lists, mistaken_form
from transformer_lesson.exercises.engine.not_a_number import first_nan, has_nan
from transformer_lesson.exercises.engine.specification import Draw, Exercise
from transformer_lesson.exercises.engine.wording import (
    CONTENT,
    Explanation,
    Turn,
    explanation,
    words,
)

IDLE = re.compile(r"\s*((\w+) = \2|None)")  # what a mark for a side effect leaves


def explain(exercise: Exercise, answer: Callable, failure: str) -> Explanation | None:
    """Explain an answer by known mistakes; `None` if none reproduces it.

    An error is explained by what raised it, unless a wrong turn raises the same on the same draws.

    Args:
        exercise: the exercise.
        answer: fails its check.
        failure: its first failure, as the check reports it.
    """
    diagnosis = diagnose(exercise, answer)
    function = exercise.tried(answer)
    outcomes = [outcome(function, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)]
    raised = [n for n, item in enumerate(outcomes) if item.raised]
    only_turns = diagnosis.fits and all(isinstance(item, str) for item in diagnosis.fits[0])
    if not raised or (diagnosis.exact and only_turns):
        by_turns = _by_turns(exercise, diagnosis.fits)
        by_nan = _by_nan(exercise, function, outcomes) if "NaN" in failure else None
        return by_turns or _by_form(exercise, outcomes) or by_nan
    stopped = _by_error(exercise, function, outcomes, failure, raised[0])
    if stopped is None or not diagnosis.fits or len(diagnosis.fits[0]) > 1:
        return stopped or _by_turns(exercise, diagnosis.fits) or _by_form(exercise, outcomes)
    besides = _by_turns(exercise, diagnosis.fits)
    text = f"{stopped.text}\nAnd where it runs: {besides.text}"
    return Explanation(f"{stopped.mistake} and {besides.mistake}", text, besides.lines)


def _by_turns(exercise: Exercise, fits: Sequence[tuple[str | Member, ...]]) -> Explanation | None:
    """Explain the mistakes that fit."""
    if not fits:
        return None
    turn_words = words(exercise.name)
    fitting = [[_in_words(turn_words, mistake) for mistake in taken] for taken in fits[:2]]
    names = [" and ".join(turn.name for turn in turns) for turns in fitting]
    texts = [explanation(*turns).text if len(turns) == 1 else _two(*turns) for turns in fitting]
    either = "Two explanations fit, and the draws cannot tell which is yours.\n" * (len(texts) > 1)
    wrong_turns = frozenset(mistake for mistake in fits[0] if isinstance(mistake, str))
    lines = changed_lines(exercise.marked, wrong_turns) if len(wrong_turns) == len(fits[0]) else ""
    return Explanation(" or ".join(names), either + "\nOr: ".join(texts), lines)


def _in_words(known, mistake: str | Member) -> Turn:
    return known[mistake] if isinstance(mistake, str) else Turn(mistake.name, mistake.why)


def _by_form(exercise: Exercise, outcomes: list[Outcome]) -> Explanation | None:
    """Explain what is wrong with the form of the results on most draws.

    On a single draw two sizes may differ by one by chance. If an earlier draw has the right form
    and wrong values, the form is not the mistake.
    """
    ours, draws = exercise.tried_reference(), [Draw(n) for n in range(exercise.draws)]
    rights = [outcome(ours, exercise.make_inputs(draw)).result for draw in draws]
    came = [n for n, theirs in enumerate(outcomes) if not theirs.raised]
    form_mistakes = {n: _form_of(exercise, draws[n], rights[n], outcomes[n].result) for n in came}
    first = next(
        (n for n in came if form_mistakes[n] or not same(rights[n], outcomes[n].result)), None
    )
    if first is None:
        return None
    if form_mistakes[first]:
        named = Counter(turn.name for turn in form_mistakes.values() if turn).most_common(1)[0][0]
        return explanation(
            next(turn for turn in form_mistakes.values() if turn and turn.name == named)
        )
    limit = None
    if len(exercise.returns) == 1:
        limit = limit_of_lists(rights, [theirs.result for theirs in outcomes], *exercise.returns)
    return explanation(limit) if limit else None


def _form_of(exercise: Exercise, draw: Draw, right: Any, mine: Any) -> Turn | None:
    """Return the mistake in the form of one draw's result; `None` if there is none."""
    names = exercise.returns
    if len(names) == 1:
        right, mine = [right], [mine]
    elif mine is not None and (not isinstance(mine, list) or len(mine) != len(names)):
        count = len(mine) if isinstance(mine, list) else 1
        listed = ", ".join(f"`{name}`" for name in names)
        name = f"{count} value{'s' * (count != 1)} instead of {len(names)}"
        return Turn(name, f"Return {listed}, in this order.")
    values = mine or [None] * len(names)
    parts = zip(names.items(), right, values, strict=True)
    turns = (
        mistaken_form(expected, yours, name, axes, draw.sizes)
        for (name, axes), expected, yours in parts
    )
    mistake = next(filter(None, turns), None)
    if mistake and len(values) == 2 and values[0] is not None:
        turned = zip(names.items(), right, values[::-1], strict=True)
        if not any(mistaken_form(a, b, name, axes, draw.sizes) for (name, axes), a, b in turned):
            listed = ", ".join(f"`{name}`" for name in names)
            return Turn("the two results the other way around", f"Return {listed}, in this order.")
    return mistake


def _by_nan(exercise: Exercise, answer: Callable, outcomes: list[Outcome]) -> Explanation | None:
    """Explain the first NaN that ours does not have."""
    for number, theirs in enumerate(outcomes):
        right = outcome(exercise.tried_reference(), exercise.make_inputs(Draw(number)))
        if has_nan(theirs.result) and not has_nan(right.result):
            origin = first_nan(answer, exercise.make_inputs(Draw(number)))
            if origin and origin.cause:
                return Explanation(origin.cause, f"This comes from {origin.cause}.")
    return None


def _by_error(
    exercise: Exercise, answer: Callable, outcomes: list[Outcome], failure: str, first: int
) -> Explanation | None:
    """Explain an error: the inputs that the answer is limited to, or the error's usual cause."""
    limit, error_explanation = find_limit(exercise, outcomes), explain_error(failure)
    draw = Draw(first)
    got = what_failed(answer, exercise.make_inputs(draw), draw.sizes)
    if limit:
        return explanation(limit._replace(why=" ".join(filter(None, [limit.why, got]))))
    if error_explanation and got:
        return error_explanation._replace(text=f"{error_explanation.text} {got}")
    return error_explanation


@cache
def _known_errors() -> list[dict[str, str]]:
    text = CONTENT.joinpath("errors.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text).values())


def explain_error(failure: str) -> Explanation | None:
    """Explain an error's usual cause, given its text."""
    for entry in _known_errors():
        if re.search(entry["says"], failure):
            return explanation(Turn(entry["name"], entry["why"]))
    return None


def changed_lines(marked: Callable, taken: frozenset[str]) -> str:
    """Return a variant's wrong lines, prefixed by a minus, and the right ones, by a plus."""
    wrong, right = (as_written(marked, turns).splitlines() for turns in (taken, frozenset()))
    changes = [line for line in difflib.ndiff(wrong, right) if line.startswith(("- ", "+ "))]
    shown_lines = [line[:2] + line[2:].strip() for line in changes if not IDLE.fullmatch(line[2:])]
    return "\n".join(shown_lines)


def _two(first: Turn, second: Turn) -> str:
    return (
        f"Two things at once: {first.name}, and {second.name}.\n"
        f"The first: {first.why}\nThe second: {second.why}"
    )
