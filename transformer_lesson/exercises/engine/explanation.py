"""Saying in words which mistake an answer makes, or which two."""

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
from transformer_lesson.exercises.engine.families import Member
from transformer_lesson.exercises.engine.form import limit_of_lists, mistaken_form
from transformer_lesson.exercises.engine.limits import limited_to, what_failed
from transformer_lesson.exercises.engine.not_a_number import first_nan, has_nan
from transformer_lesson.exercises.engine.specification import Draw, Exercise
from transformer_lesson.exercises.engine.wording import (
    CONTENT,
    Explanation,
    Turn,
    explanation,
    words,
)

IDLE = re.compile(r"\s*((\w+) = \2|None)")  # left of a mark that changes an argument, or calls


def explain(exercise: Exercise, answer: Callable, failure: str) -> Explanation | None:
    """Return which known mistakes give what the answer gives, if there are any.

    An error is explained by what raised it, unless a turn raises the same on the same draws.

    Args:
        exercise: the exercise.
        answer: fails its check.
        failure: the first thing that is wrong with it, as the check says it.
    """
    found = diagnose(exercise, answer)
    tried = exercise.tried(answer)
    given = [outcome(tried, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)]
    raised = [n for n, one in enumerate(given) if one.raised]
    own = found.fits and all(isinstance(one, str) for one in found.fits[0])
    if not raised or (found.exact and own):
        by_turns = _by_turns(exercise, found.fits)
        by_nan = _by_nan(exercise, tried, given) if "NaN" in failure else None
        return by_turns or _by_form(exercise, given) or by_nan
    stopped = _by_error(exercise, tried, given, failure, raised[0])
    if stopped is None or not found.fits or len(found.fits[0]) > 1:
        return stopped or _by_turns(exercise, found.fits) or _by_form(exercise, given)
    besides = _by_turns(exercise, found.fits)
    text = f"{stopped.text}\nAnd where it runs: {besides.text}"
    return Explanation(f"{stopped.mistake} and {besides.mistake}", text, besides.lines)


def _by_turns(exercise: Exercise, fits: Sequence[tuple[str | Member, ...]]) -> Explanation | None:
    """Return in words the mistakes that fit."""
    if not fits:
        return None
    known = words(exercise.name)
    fitting = [[_in_words(known, one) for one in taken] for taken in fits[:2]]
    names = [" and ".join(turn.name for turn in turns) for turns in fitting]
    said = [explanation(*turns).text if len(turns) == 1 else _two(*turns) for turns in fitting]
    either = "Two explanations fit, and the draws cannot tell which is yours.\n" * (len(said) > 1)
    own = frozenset(one for one in fits[0] if isinstance(one, str))
    lines = changed_lines(exercise.marked, own) if len(own) == len(fits[0]) else ""
    return Explanation(" or ".join(names), either + "\nOr: ".join(said), lines)


def _in_words(known, mistake: str | Member) -> Turn:
    return known[mistake] if isinstance(mistake, str) else Turn(mistake.name, mistake.why)


def _by_form(exercise: Exercise, given: list[Outcome]) -> Explanation | None:
    """Return what is wrong with the form of the results, as most of the draws have it.

    On a single draw two sizes may lie one apart by chance. Where an earlier draw has the right form
    and other values, the form is not what is wrong.
    """
    ours, draws = exercise.tried_reference(), [Draw(n) for n in range(exercise.draws)]
    rights = [outcome(ours, exercise.make_inputs(draw)).result for draw in draws]
    came = [n for n, one in enumerate(given) if not one.raised]
    found = {n: _form_of(exercise, draws[n], rights[n], given[n].result) for n in came}
    first = next((n for n in came if found[n] or not same(rights[n], given[n].result)), None)
    if first is None:
        return None
    if found[first]:
        named = Counter(turn.name for turn in found.values() if turn).most_common(1)[0][0]
        return explanation(next(turn for turn in found.values() if turn and turn.name == named))
    limit = None
    if len(exercise.returns) == 1:
        limit = limit_of_lists(rights, [one.result for one in given], *exercise.returns)
    return explanation(limit) if limit else None


def _form_of(exercise: Exercise, draw: Draw, right: Any, mine: Any) -> Turn | None:
    """Return what is wrong with the form of a draw's result; `None` if nothing is."""
    names = exercise.returns
    if len(names) == 1:
        right, mine = [right], [mine]
    elif mine is not None and (not isinstance(mine, list) or len(mine) != len(names)):
        count = len(mine) if isinstance(mine, list) else 1
        listed = ", ".join(f"`{one}`" for one in names)
        name = f"{count} value{'s' * (count != 1)} instead of {len(names)}"
        return Turn(name, f"Return {listed}, in this order.")
    values = mine or [None] * len(names)
    parts = zip(names.items(), right, values, strict=True)
    turns = (
        mistaken_form(one, yours, name, axes, draw.sizes) for (name, axes), one, yours in parts
    )
    found = next(filter(None, turns), None)
    if found and len(values) == 2 and values[0] is not None:
        turned = zip(names.items(), right, values[::-1], strict=True)
        if not any(mistaken_form(a, b, name, axes, draw.sizes) for (name, axes), a, b in turned):
            listed = ", ".join(f"`{one}`" for one in names)
            return Turn("the two results the other way around", f"Return {listed}, in this order.")
    return found


def _by_nan(exercise: Exercise, answer: Callable, given: list[Outcome]) -> Explanation | None:
    """Return of what the first NaN comes that ours does not have."""
    for number, one in enumerate(given):
        right = outcome(exercise.tried_reference(), exercise.make_inputs(Draw(number)))
        if has_nan(one.result) and not has_nan(right.result):
            origin = first_nan(answer, exercise.make_inputs(Draw(number)))
            if origin and origin.cause:
                return Explanation(origin.cause, f"This comes from {origin.cause}.")
    return None


def _by_error(
    exercise: Exercise, answer: Callable, given: list[Outcome], failure: str, first: int
) -> Explanation | None:
    """Return what an answer is limited to that raises, and what usually lies behind the error."""
    limit, known = limited_to(exercise, given), explain_error(failure)
    draw = Draw(first)
    got = what_failed(answer, exercise.make_inputs(draw), draw.sizes)
    if limit:
        return explanation(limit._replace(why=" ".join(filter(None, [limit.why, got]))))
    if known and got:
        return known._replace(text=f"{known.text} {got}")
    return known


@cache
def _known_errors() -> list[dict[str, str]]:
    text = CONTENT.joinpath("errors.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text).values())


def explain_error(failure: str) -> Explanation | None:
    """Return what usually lies behind an error, by its text."""
    for known in _known_errors():
        if re.search(known["says"], failure):
            return explanation(Turn(known["name"], known["why"]))
    return None


def changed_lines(marked: Callable, taken: frozenset[str]) -> str:
    """Return the lines that make a variant wrong, after a minus; after a plus the right ones."""
    wrong, right = (as_written(marked, turns).splitlines() for turns in (taken, frozenset()))
    changes = [line for line in difflib.ndiff(wrong, right) if line.startswith(("- ", "+ "))]
    told = [line[:2] + line[2:].strip() for line in changes if not IDLE.fullmatch(line[2:])]
    return "\n".join(told)


def _two(first: Turn, second: Turn) -> str:
    return (
        f"Two things at once: {first.name}, and {second.name}.\n"
        f"The first: {first.why}\nThe second: {second.why}"
    )
