"""What an answer does that no known mistake does, found out from its numbers.

A change to one token, one head or one sentence reaches some numbers of a result and leaves the
others as they were. Which ones, tells what a function mixes, leaks or overlooks, whatever it is
made of.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Failed, call, outcome
from transformer_lesson.exercises.engine.compare import (
    as_parts,
    is_readable,
    named_place,
    plain,
    same,
)
from transformer_lesson.exercises.engine.examples import argument_names
from transformer_lesson.exercises.engine.specification import Draw, Exercise
from transformer_lesson.exercises.engine.wording import Explanation

NOUNS = {"batch": "sentence", "n": "token"} | {
    name: name for name in ("head", "query", "key", "token", "target", "source", "position")
}
"""The axes along which one place is changed, and what stands there."""

MOVED, STILL = 1e-3, 1e-6  # in parts of the result's largest number; float32 rounds less
CHANGES = ((-0.5, 1.0), (0.3, -0.7))
"""Factor and summand of a change. Among thousands of numbers one may happen to stay where it was;
the same one does not stay twice."""


class Change(NamedTuple):
    """A change to one place of one argument.

    Args:
        argument: the name of the argument.
        axis, index: the name of the axis and which place along it.
        inputs: all arguments, that one changed.
    """

    argument: str
    axis: str
    index: int
    inputs: tuple


def unlike_ours(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Return in a sentence how an answer differs from ours, if it does in a way that can be told.

    Its numbers may be drawn at random, or be ours times one number, or ours and one number. An
    argument may have no effect. Or a change, or another order, moves its result where ours stays,
    or leaves it where ours moves.

    Args:
        exercise: its axes have names, and sizes that tell them apart.
        answer: gives results of the right form, but wrong ones.
    """
    numbers = range(exercise.draws)
    for number in numbers:
        told = _at_random(exercise, answer, number)
        if told:
            return Explanation("a result that is drawn at random", told)
    idle = _without_effect(exercise, answer)
    if idle:
        return idle
    for number in numbers:
        for tell in (_one_number, _one_change, _one_order):
            told = tell(exercise, answer, number)
            if told:
                return told
    return None


def _without_effect(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Say which argument changes nothing in the answer's results, on no draw, and ours on some."""
    if exercise.trial:
        return None  # its arguments are the trial's, which a learner never sees
    ours = exercise.tried_reference()
    drawn = [exercise.make_inputs(Draw(number)) for number in range(exercise.draws)]
    for place, name in enumerate(argument_names(exercise)[: min(map(len, drawn))]):
        effects = [_effect(function, exercise, place) for function in (answer, ours)]
        if effects[0] == "none" and effects[1] == "some":
            return Explanation(
                f"`{name}` without effect",
                f"Changing `{name}` changes nothing in what you return. Where does it come in?",
            )
    return None


def _effect(function: Callable, exercise: Exercise, place: int) -> str:
    """Return whether changes to an argument change a result: "some", "none", or "" if untried."""
    tried = ""
    for number in range(exercise.draws):
        before, after = (list(exercise.make_inputs(Draw(number))) for _ in range(2))
        after[place] = _another(after[place])
        if after[place] is None:
            continue
        one, other = (outcome(function, tuple(inputs)) for inputs in (before, after))
        if one.raised or other.raised or not _comparable(one.result):
            continue
        tried = "none"
        if not same(one.result, other.result):
            return "some"
    return tried


def _comparable(result: Any) -> bool:
    parts = result if isinstance(result, list) else [result]
    return all(is_readable(part) for part in parts if isinstance(part, Tensor))


def _another(value: Any) -> Any:
    """Return another value of an argument's kind; `None` if there is none that surely fits."""
    if isinstance(value, Tensor) and value.dtype == torch.bool:
        return ~value
    if isinstance(value, Tensor) and value.is_floating_point():
        return value * 0.7 + 0.2 * torch.linspace(1, 2, value.numel()).view(value.shape).to(value)
    if type(value) is float:
        return 0.7 * value + 0.01
    return None


def _at_random(exercise: Exercise, answer: Callable, number: int) -> str | None:
    """Say that two calls with the same inputs give different numbers."""
    inputs = [exercise.make_inputs(Draw(number)) for _ in range(2)]
    once, again = (_first_tensor(exercise, answer, one) for one in inputs)
    if once is None or again is None or same(once, again):
        return None
    return (
        "Called twice with the same inputs, yours gives different numbers. "
        "What in it is random? Is a dropout still on?"
    )


def _one_number(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Say that all numbers of the answer are ours times one number, or ours and one number."""
    inputs = [exercise.make_inputs(Draw(number)) for _ in range(2)]
    ours = _first_tensor(exercise, exercise.tried_reference(), inputs[0])
    yours = _first_tensor(exercise, answer, inputs[1])
    if ours is None or yours is None or ours.shape != yours.shape or same(ours, yours):
        return None
    finite = ours.isfinite() & yours.isfinite() & (ours != 0)
    if not same(ours[~finite], yours[~finite]):
        return None
    ours, yours = ours[finite], yours[finite]
    if len(ours) < 4 or not yours.any():
        return None
    for word, found in ((" times ours", yours / ours), (" more than ours", yours - ours)):
        if same(found, found[:1].expand(len(found))) and found[0].abs() > STILL:
            told = f"On one of our inputs every number of yours is {found[0]:.4g}{word}."
            return Explanation("a factor or summand that changes with the inputs", told)
    return None


def _one_change(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Say which change moves the answer's result where ours stays, or the other way round."""
    draw = Draw(number)
    exercise.make_inputs(draw)  # names the axes
    for change, other in zip(*(_changes(exercise, draw, *how) for how in CHANGES), strict=True):
        first = _differences(exercise, answer, number, change)
        if any(one.any() for one in first):
            again = _differences(exercise, answer, number, other)
            leaks, oversights = [
                (one & same_one).nonzero().tolist()
                for one, same_one in zip(first, again, strict=True)
            ]
            leaks = _across(exercise, draw, change, leaks)
            hidden = bool(leaks) and _is_hidden(exercise, number, change, tuple(leaks[0]))
            told = _said(exercise, draw, change, leaks, oversights, hidden)
            if told:
                return told
    return None


def _differences(
    exercise: Exercise, answer: Callable, number: int, change: Change
) -> tuple[Tensor, Tensor]:
    """Return which numbers a change moves in the answer's result only, and which in ours only.

    Where it moves anything of both, nothing is overlooked: a number that stays may be at an end.
    """
    functions = exercise.tried_reference(), answer
    fresh = [exercise.make_inputs(Draw(number)) for _ in functions]
    ours, yours = (_moves(exercise, *pair, change) for pair in zip(functions, fresh, strict=True))
    if ours is None or yours is None or ours.shape != yours.shape:
        return torch.tensor(False), torch.tensor(False)
    overlooked = bool((yours < STILL).all())
    return (yours > MOVED) & (ours < STILL), (ours > MOVED) & (yours < STILL) & overlooked


def _one_order(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Say where an order matters to the answer and not to ours, or the other way round."""
    draw = Draw(number)
    exercise.make_inputs(draw)  # names the axes
    for axis in filter(NOUNS.get, draw.sizes):
        ours = _depends_on_order(exercise, exercise.tried_reference(), draw, axis)
        yours = _depends_on_order(exercise, answer, draw, axis)
        if None in (ours, yours) or ours == yours:
            continue
        turned = f"With the order reversed, {NOUNS[axis]} {draw.sizes[axis] - 1} first, the numbers"
        if ours:
            told = f"{turned} must change; yours only trade places."
            return Explanation("an order that makes no difference", told)
        told = f"{turned} must only trade places; yours change."
        return Explanation("an order that makes a difference", told)
    return None


def _depends_on_order(exercise: Exercise, function: Callable, draw: Draw, axis: str) -> bool | None:
    """Return whether inputs that are turned round give more than a result that is turned round."""

    def turned(value):
        dims = _named_axes(value.shape, draw.sizes) if isinstance(value, Tensor) else {}
        return value.flip(dims[axis]) if axis in dims else value

    inputs, fresh = (exercise.make_inputs(Draw(draw.number)) for _ in range(2))
    before = _first_tensor(exercise, function, fresh)
    after = _first_tensor(exercise, function, tuple(map(turned, inputs)))
    if before is None or after is None or before.shape != after.shape:
        return None
    if same(before, turned(before)):
        return None  # a result of equal rows says nothing about their order
    return not same(before, turned(after))


def _first_tensor(exercise: Exercise, function: Callable, inputs: tuple) -> Tensor | None:
    """Return the first value of a function's result, if it is a tensor of numbers."""
    try:
        first = as_parts(call(function, inputs), exercise.returns)[0]
    except Failed:
        return None
    if not is_readable(first):
        return None
    is_tensor = first.ndim > 0 and first.dtype != torch.bool
    return plain(first).detach().double() if is_tensor else None


def _changes(exercise: Exercise, draw: Draw, factor: float, summand: float) -> Iterator[Change]:
    """All changes to the first or the last place along an axis with a name."""
    inputs = exercise.make_inputs(Draw(draw.number))
    for i, name in enumerate(argument_names(exercise)[: len(inputs)]):
        value = inputs[i]
        if not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        for axis, dim in _named_axes(value.shape, draw.sizes).items():
            for index in (0, value.size(dim) - 1):
                changed = list(exercise.make_inputs(Draw(draw.number)))
                changed[i] = value.clone()
                changed[i].select(dim, index).mul_(factor).add_(summand)
                yield Change(name, axis, index, tuple(changed))


def _named_axes(shape: tuple[int, ...], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return which axis has which name, of those whose size tells it."""
    unique = {name: size for name, size in sizes.items() if [*sizes.values()].count(size) == 1}
    return {
        name: shape.index(size)
        for name, size in unique.items()
        if name in NOUNS and shape.count(size) == 1
    }


def _moves(exercise: Exercise, function: Callable, inputs: tuple, change: Change) -> Tensor | None:
    """Return how far each number of a function's first result moves, in parts of the largest."""
    before = _first_tensor(exercise, function, inputs)
    after = _first_tensor(exercise, function, change.inputs)
    if before is None or after is None or before.shape != after.shape:
        return None
    largest = before.nan_to_num(0.0, 0.0, 0.0).abs().max()
    return (after - before).abs().nan_to_num(0.0) / largest


def _across(exercise: Exercise, draw: Draw, change: Change, places: list) -> list:
    """Return those places that lie at another index of the changed axis, or have no such axis.

    At the index itself, a number that moves where ours stays is no leak: ours may have reached an
    end there, as a chance does at 1.
    """
    axes = next(iter(exercise.returns.values()))
    named = [(place, named_place(place, axes, draw.sizes).split(", ")) for place in places]
    own = f"{change.axis} {change.index}"
    return [place for place, told in named if own not in told]


def _is_hidden(exercise: Exercise, number: int, change: Change, place: tuple) -> bool:
    """Return whether a mask keeps a change from a place: without it, ours moves there."""
    names = argument_names(exercise)

    def shown(inputs: tuple) -> tuple:
        pairs = zip(inputs, names, strict=False)
        return tuple(None if name.endswith("mask") else value for value, name in pairs)

    free = change._replace(inputs=shown(change.inputs))
    inputs = shown(exercise.make_inputs(Draw(number)))
    ours = _moves(exercise, exercise.tried_reference(), inputs, free)
    return ours is not None and bool(ours[place] > MOVED)


def _said(
    exercise: Exercise, draw: Draw, change: Change, leaks: list, oversights: list, hidden: bool
) -> Explanation | None:
    """Put a change in words; `hidden` if a mask keeps it from where it leaks."""
    noun = NOUNS[change.axis]
    if not leaks and not oversights:
        return None
    axes = next(iter(exercise.returns.values()))
    place = named_place((leaks or oversights)[0], axes, draw.sizes)
    changed = f"Changing `{change.argument}` at {noun} {change.index}"
    if not leaks:
        told = f"{changed} must move the result at {place}; yours stays as it was."
        return Explanation(f"a {noun} of `{change.argument}` that is overlooked", told)
    told = f"{changed} moves your result at {place}, but must not."
    if hidden:
        told += " The mask hides it there. What does a query get whose keys are all hidden?"
        return Explanation(f"a {noun} that is seen although it is hidden", told)
    if f"{change.axis} " in place:
        told += f" What belongs to one {noun} reaches another: over which axis do you go?"
    return Explanation(f"a {noun} that reaches what it must not", told)
