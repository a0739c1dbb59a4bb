"""Families of mistakes that are possible in any function, tried on every exercise.

A family changes our function's arguments (one left out, two swapped) or its result (the opposite
sign, the first sentence's result for all, one item too few). Its words only say how an answer's
results relate to ours, so they are true wherever they fit.

Long because it is tables: the changes for each kind of result and argument.
"""

import inspect
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Outcome, outcome
from transformer_lesson.exercises.engine.compare import is_readable, same
from transformer_lesson.exercises.engine.specification import Draw, Exercise

WORDS = files("transformer_lesson.exercises").joinpath("families.toml")

FLOATS: dict[str, Callable[[Tensor], Tensor]] = {
    "zero": torch.zeros_like,
    "negative": torch.neg,
    "absolute": torch.abs,
    "square": torch.square,
    "root": torch.sqrt,
    "reciprocal": torch.reciprocal,
    "exponential": torch.exp,
    "logarithm": torch.log,
    "complement": lambda x: 1 - x,
    "no_negative": lambda x: x.clamp(min=0),
    "whole": torch.trunc,
    "rounded_to_whole": torch.round,
    "half_precision": lambda x: x.to(torch.float16).to(x.dtype),
}
WHOLES = {
    "one_more": lambda x: x + 1,
    "one_less": lambda x: x - 1,
    "negative": lambda x: -x,
}
ALONG: dict[str, Callable[[Tensor, int], Tensor]] = {
    "first_for_all": lambda x, dim: x.narrow(dim, 0, 1).expand_as(x),
    "last_for_all": lambda x, dim: x.narrow(dim, x.size(dim) - 1, 1).expand_as(x),
    "reversed": lambda x, dim: x.flip(dim),
    "shifted_up": lambda x, dim: x.roll(1, dim),
    "shifted_down": lambda x, dim: x.roll(-1, dim),
}
ALONG_FLOATS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "cumulated": lambda x, dim: x.cumsum(dim),
    "mean_for_all": lambda x, dim: x.mean(dim, keepdim=True).expand_as(x),
    "shares": lambda x, dim: x / x.sum(dim, keepdim=True),
    "unit_length": lambda x, dim: x / x.norm(dim=dim, keepdim=True),
}
LISTS: dict[str, Callable[[list], list]] = {
    "without_first": lambda x: x[1:],
    "without_last": lambda x: x[:-1],
    "first_alone": lambda x: x[:1],
    "last_alone": lambda x: x[-1:],
    "reversed_list": lambda x: x[::-1],
    "empty": lambda x: [],
    "without_repeats": lambda x: [item for i, item in enumerate(x) if item not in x[:i]],
}
TEXTS: dict[str, Callable[[str], str]] = {
    "stripped": str.strip,
    "one_newline_more": lambda x: x + "\n",
    "one_newline_less": lambda x: x.removesuffix("\n"),
    "without_spaces": lambda x: x.replace(" ", ""),
}


def _square_transposed(x: Tensor) -> Tensor:
    return x.mT if x.ndim > 1 and x.size(-1) == x.size(-2) else x


def _first_for_all(x: Tensor) -> Tensor:
    return x[:1].expand_as(x).clone() if x.ndim > 1 else x


OF_ARGUMENT: dict[str, dict[str, Callable[[Tensor], Tensor]]] = {
    "bool": {
        "argument_inverted": torch.logical_not,
        "always_true_argument": torch.ones_like,
        "argument_transposed": _square_transposed,
    },
    "float": {
        "argument_zero": torch.zeros_like,
        "argument_one": torch.ones_like,
        "argument_negative": torch.neg,
        "argument_first_for_all": _first_for_all,
        "argument_transposed": _square_transposed,
        "argument_softmax": lambda x: x.softmax(-1) if x.ndim else x,
        "argument_log_softmax": lambda x: x.log_softmax(-1) if x.ndim else x,
        "argument_exponential": torch.exp,
        "argument_logarithm": torch.log,
        "argument_half": lambda x: x.to(torch.float16).to(x.dtype),
    },
    "int": {
        "argument_one_more": lambda x: x + 1,
        "argument_one_less": lambda x: x - 1,
        "argument_first_for_all": _first_for_all,
        "argument_reversed": lambda x: x.flip(-1) if x.ndim else x,
    },
    "": {},
}


class Member(NamedTuple):
    """One mistake of a family, for one exercise.

    Args:
        name, why: the mistake in words: a noun phrase, and sentences.
        given: changes a draw's arguments; `None` leaves them.
        gives: changes our result, given also its axes' sizes by name; `None` leaves it.
    """

    name: str
    why: str
    given: Callable[[tuple], tuple] | None = None
    gives: Callable[[Any, Mapping[str, int]], Any] | None = None


class Ours:
    """Our function's outcomes on an exercise's draws, plain and under a family's changes.

    Args:
        exercise: has our function as its reference.
    """

    def __init__(self, exercise: Exercise):
        self.exercise, self.function = exercise, exercise.tried_reference()
        self.right, self.sizes = [], []
        for number in range(exercise.draws):
            draw = Draw(number)
            self.right.append(outcome(self.function, exercise.make_inputs(draw)))
            self.sizes.append(draw.sizes)

    def inputs(self, number: int) -> tuple:
        """Return a fresh copy of a draw's arguments."""
        return self.exercise.make_inputs(Draw(number))

    def under(self, member: Member, number: int, base: Outcome | None = None) -> Outcome:
        """Return the outcome on a draw under a member's change.

        Args:
            member: of a family.
            number: of the draw.
            base: the outcome whose result is changed; by default our function's.
        """
        changed = base or self.right[number]
        if member.given:
            changed = outcome(self.function, member.given(self.inputs(number)))
        if member.gives and not changed.raised:
            sizes = self.sizes[number]
            changed = changed._replace(result=member.gives(changed.result, sizes))
        return changed


def of_results(exercise: Exercise, ours: Ours) -> Iterator[Member]:
    """Yield the members that change results, for each returned value."""
    names = list(exercise.returns)
    for place, name in enumerate(names):
        if exercise.trial and isinstance(ours.right[0].result, list) and place:
            continue  # the trial's extra findings, which a learner never sees
        values = [_part(outcome.result, place, len(names)) for outcome in ours.right]
        axes = exercise.returns[name].split()
        for key, change in _changes(values):
            yield _member(key, _at_part(change, place, len(names)), value=name)
        along = () if exercise.trial else _changes_along(values, axes, ours.sizes)
        for key, axis, change in along:
            yield _member(key, _at_part(change, place, len(names)), value=name, axis=axis)
        if all(isinstance(value, Tensor) and value.ndim > 1 for value in values):
            if all(value.size(-1) == value.size(-2) for value in values):
                yield _member("transposed", _at_part(_transposed, place, len(names)), value=name)


def of_arguments(exercise: Exercise, ours: Ours) -> Iterator[Member]:
    """Yield the members that change one argument, or swap two."""
    if exercise.trial:
        return  # the arguments are the trial's; a learner never sees them
    parameters = inspect.signature(inspect.unwrap(exercise.load_reference())).parameters
    draws = [ours.inputs(number) for number in range(exercise.draws)]
    count = min(map(len, draws))
    names = list(parameters)[:count]
    for place, name in enumerate(names):
        default = parameters[name].default
        values = [inputs[place] for inputs in draws]
        for key, change in _changes_of_argument(values, default):
            yield _member(key, given=_at_place(change, place), value=name)
    for first, second in combinations(range(count), 2):
        if all(_alike(inputs[first], inputs[second]) for inputs in draws):
            yield _member(
                "exchanged",
                given=_exchanged(first, second),
                value=names[first],
                other=names[second],
            )


def by_a_factor(
    exercise: Exercise, ours: Ours, mine: list[Outcome], valued: list[int]
) -> Member | None:
    """Return the member that makes the answer ours times, or plus, a constant.

    A factor may vary between draws if it depends on an axis's size or on an argument.
    """
    if len(exercise.returns) > 1:
        return None
    (value,) = exercise.returns
    for key, relation in (
        ("factor", lambda right, yours: yours / right),
        ("summand", lambda right, yours: yours - right),
    ):
        factors = [_one_number(ours.right[n].result, mine[n].result, relation) for n in valued]
        if key == "factor" and (0.0 in factors or {*factors} == {-1.0}):
            continue  # nothing to compare, or only a sign
        if (
            not factors
            or None in factors
            or all(abs(f - (key == "factor")) < 1e-6 for f in factors)
        ):
            continue
        if all(math.isclose(f, factors[0], rel_tol=1e-4) for f in factors) and len(factors) > 1:
            return _member(key, value=value, number=f"{factors[0]:.4g}")
        named = _explained(exercise, ours, valued, factors) if key == "factor" else None
        if named:
            return _member("factor_of", value=value, number=named)
    return None


def by_an_argument(
    exercise: Exercise, ours: Ours, mine: list[Outcome], valued: list[int]
) -> Member | None:
    """Return the member that makes the answer ours plus, or minus, one of its arguments."""
    if len(exercise.returns) > 1 or exercise.trial:
        return None
    (value,) = exercise.returns
    names = list(inspect.signature(ours.function).parameters)
    tried = [(ours.inputs(n), ours.right[n].result, mine[n].result) for n in valued]
    for place, name in enumerate(names[: min((len(trial[0]) for trial in tried), default=0)]):
        for key, sign in (("argument_added", 1), ("argument_taken_away", -1)):
            if all(_is_sum(right, sign, inputs[place], yours) for inputs, right, yours in tried):
                return _member(key, value=value, other=name)
    return None


def _is_sum(right: Any, sign: int, argument: Any, yours: Any) -> bool:
    """Return whether a result is the right one plus, or minus, an argument that is not all 0."""
    if not _kind(right) == _kind(argument) == _kind(yours) == "float":
        return False
    return (
        right.shape == argument.shape
        and bool(argument.any())
        and same(right.double() + sign * argument.double(), yours.double())
    )


def _explained(exercise: Exercise, ours: Ours, valued: list[int], factors: list[float]) -> str:
    """Return the one quantity whose power equals every draw's factor; "" if none or several."""
    numbers = [_numbers(exercise, ours, n) for n in valued]
    names = set.intersection(*map(set, numbers))
    explanations = []
    for power, words in POWERS.items():
        for name in sorted(names):
            bases = [named_numbers[name] for named_numbers in numbers]
            if len(set(bases)) > 1 and all(
                base > 0 and math.isclose(base**power, factor, rel_tol=1e-4)
                for base, factor in zip(bases, factors, strict=True)
            ):
                explanations.append(words.format(name))
    return explanations[0] if len(explanations) == 1 else ""


POWERS = {
    1.0: "{}",
    0.5: "the root of {}",
    -1.0: "1 / {}",
    -0.5: "1 / the root of {}",
    2.0: "the square of {}",
    -2.0: "1 / the square of {}",
}


def _numbers(exercise: Exercise, ours: Ours, number: int) -> dict[str, float]:
    """Return a draw's axis sizes and numeric arguments by name."""
    sizes = {f"the number of `{name}`": float(size) for name, size in ours.sizes[number].items()}
    parameters = inspect.signature(ours.function).parameters
    pairs = zip(parameters, ours.inputs(number), strict=False)
    return sizes | {f"`{n}`": float(v) for n, v in pairs if type(v) in (int, float)}


def _one_number(right: Any, yours: Any, relation: Callable) -> float | None:
    """Return the one number that relates two results everywhere; `None` if there is none."""
    if isinstance(right, float) and isinstance(yours, float):
        right, yours = torch.tensor([right]), torch.tensor([yours])
    if not _kind(right) == _kind(yours) == "float" or right.shape != yours.shape:
        return None
    right, yours = right.double(), yours.double()
    usable = right.isfinite() & yours.isfinite() & (right.abs() > 1e-6)
    if not usable.any() or not same(right[~usable], yours[~usable]):
        return None
    numbers = relation(right[usable], yours[usable])
    middle = numbers.median()
    return float(middle) if same(numbers, middle.expand_as(numbers)) else None


@cache
def _words() -> dict[str, dict[str, str]]:
    return tomllib.loads(WORDS.read_text(encoding="utf-8"))


def _member(
    key: str, gives: Callable | None = None, given: Callable | None = None, **words
) -> Member:
    template = _words()[key]
    return Member(template["name"].format(**words), template["why"].format(**words), given, gives)


def _part(result: Any, place: int, count: int) -> Any:
    return result if count == 1 else result[place]


def _at_part(change: Callable, place: int, count: int) -> Callable:
    """Turn a change of one returned value into a change of the whole result."""

    def changed(result: Any, sizes: Mapping[str, int]) -> Any:
        """Return the result with one value changed."""
        if count == 1:
            return change(result, sizes)
        if not isinstance(result, list) or len(result) != count:
            return result  # a wrong turn may return something else
        return [change(item, sizes) if i == place else item for i, item in enumerate(result)]

    return changed


def _at_place(change: Callable, place: int) -> Callable:
    return lambda inputs: (*inputs[:place], change(inputs[place]), *inputs[place + 1 :])


def _exchanged(first: int, second: int) -> Callable:
    def exchanged(inputs: tuple) -> tuple:
        order = list(inputs)
        order[first], order[second] = order[second], order[first]
        return tuple(order)

    return exchanged


def _alike(one: Any, other: Any) -> bool:
    """Return whether two arguments could be confused."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.is_floating_point() == other.is_floating_point()
    return type(one) is type(other) and isinstance(one, int | float | list)


def _changes(values: list[Any]) -> Iterator[tuple[str, Callable]]:
    """Yield the changes of a value that need no axis, by its kind."""
    first = values[0]
    if isinstance(first, Tensor) and first.dtype == torch.bool:
        yield "inverted", _guarded(torch.logical_not, "bool")
        yield "always_true", _guarded(torch.ones_like, "bool")
        yield "always_false", _guarded(torch.zeros_like, "bool")
    elif isinstance(first, Tensor):
        kind = _kind(first)
        changes = FLOATS if kind == "float" else WHOLES
        yield from ((key, _guarded(change, kind)) for key, change in changes.items())
    elif isinstance(first, bool):
        yield "inverted", lambda x, _: not x if isinstance(x, bool) else x
        yield "always_true", lambda x, _: True
        yield "always_false", lambda x, _: False
    elif isinstance(first, float):
        yield from ((key, _on_number(change)) for key, change in FLOATS.items())
    elif isinstance(first, int):
        yield from ((key, lambda x, _, f=change: f(x)) for key, change in WHOLES.items())
    elif isinstance(first, list):
        yield from ((key, _on(list, change)) for key, change in LISTS.items())
        if all(type(item) is int for value in values for item in value):
            for key in ("one_more", "one_less"):
                yield key, _on(list, lambda x, f=WHOLES[key]: [f(item) for item in x])
    elif isinstance(first, str):
        yield from ((key, _on(str, change)) for key, change in TEXTS.items())


def _kind(value: Any) -> str:
    """Return a tensor's kind, "bool", "float" or "int"; "" for anything else."""
    if not is_readable(value) or value.is_complex():
        return ""
    kind = "float" if value.is_floating_point() else "int"
    return "bool" if value.dtype == torch.bool else kind


def _guarded(change: Callable[[Tensor], Tensor], kind: str) -> Callable:
    """Limit a change to tensors of one kind: a wrong turn may return anything."""
    return lambda x, _: change(x) if _kind(x) == kind else x


def _on(kind: type, change: Callable) -> Callable:
    return lambda x, _: change(x) if isinstance(x, kind) else x


def _on_number(change: Callable[[Tensor], Tensor]) -> Callable:
    """Turn a change of a tensor into a change of a float."""
    return lambda x, _: (
        change(torch.tensor(x, dtype=torch.float64)).item() if isinstance(x, float) else x
    )


def _changes_along(
    values: list[Any], axes: list[str], sizes: list[Mapping[str, int]]
) -> Iterator[tuple[str, str, Callable]]:
    """Yield the changes along each named axis, with its name."""
    if not all(isinstance(value, Tensor) and value.ndim for value in values):
        return
    dims_of_values = [
        set(_dims(value, axes, drawn_sizes))
        for value, drawn_sizes in zip(values, sizes, strict=True)
    ]
    kind = _kind(values[0])
    floats = ALONG_FLOATS if kind == "float" else {}
    for axis in sorted(set().union(*dims_of_values)):
        for key, change in (ALONG | floats).items():

            def along(x: Any, drawn_sizes: Mapping[str, int], axis=axis, change=change) -> Any:
                dims = _dims(x, axes, drawn_sizes) if _kind(x) == kind else {}
                return change(x, dims[axis]) if axis in dims and x.numel() else x

            yield key, axis, along


def _dims(value: Tensor, axes: list[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the dimension of each named axis of a result; its last axes are named by `axes`."""
    count = value.ndim - len(axes)
    leading = [*sizes][: max(count, 0)]
    return {name: dim for dim, name in enumerate([*leading, *axes][: value.ndim])}


def _transposed(value: Any, _sizes: Mapping[str, int]) -> Any:
    return value.mT if isinstance(value, Tensor) and value.ndim > 1 else value


def _changes_of_argument(values: list[Any], default: Any) -> Iterator[tuple[str, Callable]]:
    """Yield the changes of an argument, by its kind on the draws where it is not `None`."""
    present = [value for value in values if value is not None]
    if not present:
        return
    first = present[0]
    optional = default is None or len(present) < len(values)
    if optional:
        yield "left_out", lambda x: None
    if isinstance(first, Tensor):
        kind = _kind(first)
        for key, change in OF_ARGUMENT[kind].items():
            if key != "always_true_argument" or not optional:
                yield key, _if_tensor(change, kind)
    elif isinstance(first, bool):
        yield "argument_inverted", lambda x: not x
    elif isinstance(first, int):
        yield "argument_one_more", lambda x: x + 1
        yield "argument_one_less", lambda x: x - 1
        for number in dict.fromkeys((0, 1, 2, default if isinstance(default, int) else 1)):
            yield f"argument_always_{number}" if number < 3 else "argument_default", _always(number)
    elif isinstance(first, float):
        for number in (0.0, 1.0):
            yield f"argument_always_{number:.0f}", _always(number)
        if isinstance(default, float):
            yield "argument_default", _always(default)
        yield "argument_negative", lambda x: -x
        yield "argument_reciprocal", lambda x: 1 / x if x else x
    elif isinstance(first, list):
        yield "argument_reversed", lambda x: x[::-1]
        yield "argument_without_first", lambda x: x[1:]
        yield "argument_without_last", lambda x: x[:-1]


def _always(number: float) -> Callable:
    return lambda _: number


def _if_tensor(change: Callable[[Tensor], Tensor], kind: str) -> Callable:
    return lambda x: change(x) if _kind(x) == kind else x
