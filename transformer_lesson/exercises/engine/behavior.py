"""Describing wrong answers that match no known mistake, from their numbers alone.

A change to one token, head or sentence moves some numbers of a result and leaves the rest. Which
numbers move shows what a function mixes, leaks or ignores, however it is written.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product
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
"""The axes along which one place is changed, and the noun for such a place."""

MOVED, STILL = 1e-3, 1e-6  # relative to the result's largest number; float32 rounds less
CHANGES = ((-0.5, 1.0), (0.3, -0.7))
"""Factor and summand of each change. Among thousands of numbers one may stay put by chance, but not
the same one twice."""


class Change(NamedTuple):
    """A change to one place of one argument.

    Args:
        argument: the name of the argument.
        axis, index: the axis's name and the place along it.
        inputs: all arguments, with that one changed.
    """

    argument: str
    axis: str
    index: int
    inputs: tuple


def explain_by_behavior(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Say in a sentence how an answer differs from ours; `None` if nothing can be said.

    It may give something else at each call, a constant multiple of ours, or ours plus a constant.
    An argument may have no effect. Or a change, or a different order, moves its result where ours
    stays put, or leaves it where ours moves.

    Args:
        exercise: has named axes of distinct sizes.
        answer: returns results of the right form but with wrong values.
    """
    numbers = range(exercise.draws)
    for number in numbers:
        explanation = _not_twice(exercise, answer, number)
        if explanation:
            return explanation
    idle = _without_effect(exercise, answer)
    if idle:
        return idle
    for number in numbers:
        for tell in (_one_number, _one_change, _one_order):
            explanation = tell(exercise, answer, number)
            if explanation:
                return explanation
    return None


def _without_effect(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Say which argument never affects the answer's results but affects ours."""
    if exercise.trial:
        return None  # the arguments are the trial's; a learner never sees them
    ours = exercise.tried_reference()
    draws = [exercise.make_inputs(Draw(number)) for number in range(exercise.draws)]
    for place, name in enumerate(argument_names(exercise)[: min(map(len, draws))]):
        effects = [_effect(function, exercise, place) for function in (answer, ours)]
        if effects[0] == "none" and effects[1] == "some":
            return Explanation(
                f"`{name}` without effect",
                f"Changing `{name}` changes nothing in what you return. Where does it come in?",
            )
    return None


def _effect(function: Callable, exercise: Exercise, place: int) -> str:
    """Return an argument's effect on the result: "some", "none", or "" if not testable."""
    effect = ""
    for number, which in product(range(exercise.draws), range(2)):
        before, after = (list(exercise.make_inputs(Draw(number))) for _ in range(2))
        after[place] = _another(after[place], which)
        if after[place] is None:
            continue
        first, second = (outcome(function, tuple(inputs)) for inputs in (before, after))
        if first.raised or second.raised or not _comparable(first.result):
            continue
        effect = "none"
        if not same(first.result, second.result):
            return "some"
    return effect


def _comparable(result: Any) -> bool:
    parts = result if isinstance(result, list) else [result]
    return all(is_readable(part) for part in parts if isinstance(part, Tensor))


def _another(value: Any, which: int) -> Any:
    """Return a different value of the same kind; `None` if none is certain to be valid."""
    if isinstance(value, Tensor) and value.dtype == torch.bool:
        return ~value
    if isinstance(value, Tensor) and value.is_floating_point():
        return value * 0.7 + 0.2 * torch.linspace(1, 2, value.numel()).view(value.shape).to(value)
    if type(value) is float:
        return (0.7 * value + 0.01, 6 * value + 1)[which]
    return None


def _not_twice(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Report two calls with the same inputs that give different results: by chance, or by a state.

    What a function draws at random is the same again if it begins from the same seed.
    """
    ours = outcome(exercise.tried_reference(), exercise.make_inputs(Draw(number))).result
    unseeded = [_result(exercise, answer, number) for _ in range(2)]
    if any(type(result) is not type(ours) or not _comparable(result) for result in unseeded):
        return None
    if same(*unseeded):
        return None
    text = "Called twice with the same inputs, yours gives different results. "
    before = random.getstate()
    with torch.random.fork_rng(devices=[]):
        seeded = [_result(exercise, answer, number, seed=0) for _ in range(2)]
    random.setstate(before)
    if same(*seeded):
        text += "What in it is random? Is a dropout still on?"
        return Explanation("a result that is drawn at random", text)
    text += (
        "What does it keep from one call to the next? A list in the line of `def`, such as "
        "`found=[]`, is made only once; so is what stands outside the function."
    )
    return Explanation("something kept from one call to the next", text)


def _result(exercise: Exercise, answer: Callable, number: int, seed: int | None = None) -> Any:
    """Return an answer's result on a draw, from a seed if one is given."""
    if seed is not None:
        random.seed(seed)
        torch.manual_seed(seed)
    return outcome(answer, exercise.make_inputs(Draw(number))).result


def _one_number(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Report a constant factor or summand between the answer's numbers and ours."""
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
    for word, relation in ((" times ours", yours / ours), (" more than ours", yours - ours)):
        if same(relation, relation[:1].expand(len(relation))) and relation[0].abs() > STILL:
            sentence = f"On one of our inputs every number of yours is {relation[0]:.4g}{word}."
            return Explanation("a factor or summand that changes with the inputs", sentence)
    return None


def _one_change(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Report a change that moves the answer's result where ours stays put, or vice versa."""
    draw = Draw(number)
    exercise.make_inputs(draw)  # names the axes
    for change, other in zip(*(_changes(exercise, draw, *how) for how in CHANGES), strict=True):
        first = _differences(exercise, answer, number, change)
        if any(difference.any() for difference in first):
            repeated = _differences(exercise, answer, number, other)
            leaks, oversights = [
                (moved & same_one).nonzero().tolist()
                for moved, same_one in zip(first, repeated, strict=True)
            ]
            leaks = _at_other_indices(exercise, draw, change, leaks)
            leaks = leaks and _not_saturated(exercise, number, change, leaks)
            leaks = leaks and _not_constant(exercise, number, change, leaks)
            hidden = bool(leaks) and _is_hidden(exercise, number, change, tuple(leaks[0]))
            explanation = _in_words(exercise, draw, change, leaks, oversights, hidden)
            if explanation:
                return explanation
    return None


def _differences(
    exercise: Exercise, answer: Callable, number: int, change: Change
) -> tuple[Tensor, Tensor]:
    """Return masks of the numbers that a change moves only in the answer's result, or only in ours.

    If it moves anything in the answer, nothing counts as overlooked: a still number may be
    saturated.
    """
    functions = exercise.tried_reference(), answer
    fresh = [exercise.make_inputs(Draw(number)) for _ in functions]
    ours, yours = (_moves(exercise, *pair, change) for pair in zip(functions, fresh, strict=True))
    if ours is None or yours is None or ours.shape != yours.shape:
        return torch.tensor(False), torch.tensor(False)
    overlooked = bool((yours < STILL).all())
    return (yours > MOVED) & (ours < STILL), (ours > MOVED) & (yours < STILL) & overlooked


def _one_order(exercise: Exercise, answer: Callable, number: int) -> Explanation | None:
    """Report an axis whose order matters to the answer but not to ours, or vice versa."""
    draw = Draw(number)
    exercise.make_inputs(draw)  # names the axes
    for axis in filter(NOUNS.get, draw.sizes):
        ours = _depends_on_order(exercise, exercise.tried_reference(), draw, axis)
        yours = _depends_on_order(exercise, answer, draw, axis)
        if None in (ours, yours) or ours == yours:
            continue
        turned = f"With the order reversed, {NOUNS[axis]} {draw.sizes[axis] - 1} first, the numbers"
        if ours:
            sentence = f"{turned} must change; yours only trade places."
            return Explanation("an order that makes no difference", sentence)
        sentence = f"{turned} must only trade places; yours change."
        return Explanation("an order that makes a difference", sentence)
    return None


def _depends_on_order(exercise: Exercise, function: Callable, draw: Draw, axis: str) -> bool | None:
    """Return whether reversing the inputs along an axis does more than reverse the result."""

    def turned(value):
        dims = _named_axes(value.shape, draw.sizes) if isinstance(value, Tensor) else {}
        return value.flip(dims[axis]) if axis in dims else value

    inputs, fresh = (exercise.make_inputs(Draw(draw.number)) for _ in range(2))
    before = _first_tensor(exercise, function, fresh)
    after = _first_tensor(exercise, function, tuple(map(turned, inputs)))
    if before is None or after is None or before.shape != after.shape:
        return None
    if same(before, turned(before)):
        return None  # equal rows say nothing about their order
    return not same(before, turned(after))


def _first_tensor(exercise: Exercise, function: Callable, inputs: tuple) -> Tensor | None:
    """Return the first returned value if it is a tensor of numbers."""
    try:
        first = as_parts(call(function, inputs), exercise.returns)[0]
    except Failed:
        return None
    if not is_readable(first):
        return None
    is_tensor = first.ndim > 0 and first.dtype != torch.bool
    return plain(first).detach().double() if is_tensor else None


def _changes(exercise: Exercise, draw: Draw, factor: float, summand: float) -> Iterator[Change]:
    """Yield changes to the first and the last place along each named axis."""
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
    """Return the dimension of each named axis that its size identifies."""
    unique = {name: size for name, size in sizes.items() if [*sizes.values()].count(size) == 1}
    return {
        name: shape.index(size)
        for name, size in unique.items()
        if name in NOUNS and shape.count(size) == 1
    }


def _moves(exercise: Exercise, function: Callable, inputs: tuple, change: Change) -> Tensor | None:
    """Return how far each number of the first result moves, relative to the largest."""
    before = _first_tensor(exercise, function, inputs)
    after = _first_tensor(exercise, function, change.inputs)
    if before is None or after is None or before.shape != after.shape:
        return None
    largest = before.nan_to_num(0.0, 0.0, 0.0).abs().max()
    return (after - before).abs().nan_to_num(0.0) / largest


def _at_other_indices(exercise: Exercise, draw: Draw, change: Change, places: list) -> list:
    """Return the places at other indices of the changed axis, or without that axis.

    At the changed index itself, a number that moves where ours stays is no leak: ours may be
    saturated, as a probability at 1 is.
    """
    axes = next(iter(exercise.returns.values()))
    named = [(place, named_place(place, axes, draw.sizes).split(", ")) for place in places]
    changed_place = f"{change.axis} {change.index}"
    return [place for place, coordinates in named if changed_place not in coordinates]


def _not_saturated(exercise: Exercise, number: int, change: Change, places: list) -> list:
    """Return the places where ours stays put for small numbers too: it isn't just saturated."""

    def small(inputs: tuple) -> tuple:
        """Return the inputs with a tenth of each floating-point tensor."""
        floats = [
            isinstance(argument, Tensor) and argument.is_floating_point() for argument in inputs
        ]
        return tuple(
            0.1 * argument if is_one else argument
            for argument, is_one in zip(inputs, floats, strict=True)
        )

    gentle = change._replace(inputs=small(change.inputs))
    ours = exercise.tried_reference()
    moves = _moves(exercise, ours, small(exercise.make_inputs(Draw(number))), gentle)
    return [place for place in places if moves is None or moves[tuple(place)] < STILL]


def _not_constant(exercise: Exercise, number: int, change: Change, places: list) -> list:
    """Return the places where ours moves without a mask if all numbers of all arguments change.

    Where it never moves, the axis is not what keeps a change away.
    """
    inputs = _unmasked(exercise, exercise.make_inputs(Draw(number)))
    other_inputs = tuple(
        _another(argument, 0) if isinstance(argument, Tensor) else argument for argument in inputs
    )
    pairs = zip(inputs, other_inputs, strict=True)
    change_of_all = change._replace(inputs=tuple(a if b is None else b for a, b in pairs))
    moves = _moves(exercise, exercise.tried_reference(), inputs, change_of_all)
    return [place for place in places if moves is None or moves[tuple(place)] > MOVED]


def _is_hidden(exercise: Exercise, number: int, change: Change, place: tuple) -> bool:
    """Return whether a mask hides a change from a place: without it, ours moves there."""
    free = change._replace(inputs=_unmasked(exercise, change.inputs))
    inputs = _unmasked(exercise, exercise.make_inputs(Draw(number)))
    ours = _moves(exercise, exercise.tried_reference(), inputs, free)
    return ours is not None and bool(ours[place] > MOVED)


def _unmasked(exercise: Exercise, inputs: tuple) -> tuple:
    """Return the arguments with `None` for each mask."""
    pairs = zip(inputs, argument_names(exercise), strict=False)
    return tuple(None if name.endswith("mask") else value for value, name in pairs)


def _in_words(
    exercise: Exercise, draw: Draw, change: Change, leaks: list, oversights: list, hidden: bool
) -> Explanation | None:
    """Describe a change in words; `hidden` if a mask should keep it from where it leaks."""
    noun = NOUNS[change.axis]
    if not leaks and not oversights:
        return None
    axes = next(iter(exercise.returns.values()))
    place = named_place((leaks or oversights)[0], axes, draw.sizes)
    changed = f"Changing `{change.argument}` at {noun} {change.index}"
    if not leaks:
        sentence = f"{changed} must move the result at {place}; yours stays as it was."
        return Explanation(f"a {noun} of `{change.argument}` that is overlooked", sentence)
    sentence = f"{changed} moves your result at {place}, but must not."
    if hidden:
        sentence += " The mask hides it there. Which of True and False hides? "
        sentence += "And what does a query get whose keys are all hidden?"
        return Explanation(f"a {noun} that is seen although it is hidden", sentence)
    if f"{change.axis} " in place:
        sentence += f" What belongs to one {noun} reaches another: over which axis do you go?"
    return Explanation(f"a {noun} that reaches what it must not", sentence)
