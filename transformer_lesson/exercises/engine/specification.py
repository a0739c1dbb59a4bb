"""What makes up an exercise: reference, random inputs, rules, hints, wrong turns."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

PRIMES = (2, 3, 5, 7, 11, 13)
DRAWS = 5  # how many draws an answer is tried on


class Draw:
    """One draw of random inputs, in which every named axis has its own prime size.

    Distinct sizes expose swapped axes and let a message name the axes of a wrong shape: if only
    `head` has size 3, a 3 is the head axis.

    Args:
        number: seeds the draw; exercises also use it to vary the kind of inputs (which mask, ...).
        small: sizes to use instead of primes, first the batch's, then the other axes' in turn;
            numbers are rounded to one decimal so that the draw can be printed.
        seed: another seed, for draws that `check` never shows; the kind still follows from number.
    """

    def __init__(self, number: int, small: tuple[int, ...] = (), seed: int | None = None):
        self.number, self.small, self.seed = number, small, seed
        self.sizes: dict[str, int] = {}
        self.generator = torch.Generator().manual_seed(number if seed is None else seed)
        order = torch.randperm(len(PRIMES), generator=self.generator)
        self._unused = [PRIMES[i] for i in order]

    def size(self, axis: str, at_least: int = 1) -> int:
        """Return an axis's size, chosen at the first call."""
        if axis not in self.sizes:
            self.sizes[axis] = self._choose(axis, at_least)
        return self.sizes[axis]

    def _choose(self, axis: str, at_least: int) -> int:
        if self.small:
            batch, *others = self.small
            size = batch if axis == "batch" else others[len(self.sizes) % len(others)]
            return max(at_least, size)
        size = next(size for size in self._unused if size >= at_least)
        self._unused.remove(size)
        return size

    def one_of(self, options: Sequence) -> Any:
        """Return one of the options, cycling through them draw by draw."""
        return options[self.number % len(options)]

    def unless_unseen(self, usual: int, low: int, high: int) -> int:
        """Return the usual value; in a draw with a seed, an integer from low to high."""
        return usual if self.seed is None else int(self.integers("", low, high + 1))

    def shape(self, axes: str) -> tuple[int, ...]:
        """Return the sizes of the axes named in a string, such as "batch n d_model" or "1 n"."""
        return tuple(int(axis) if axis.isdigit() else self.size(axis) for axis in axes.split())

    def normal(self, axes: str) -> Tensor:
        """Return normally distributed numbers of the named shape."""
        numbers = torch.randn(self.shape(axes), generator=self.generator)
        return numbers.round(decimals=1) + 0.0 if self.small else numbers  # no -0.0

    def positive(self, axes: str) -> Tensor:
        """Return numbers between 0.5 and 1.5 of the named shape."""
        numbers = 0.5 + torch.rand(self.shape(axes), generator=self.generator)
        return numbers.round(decimals=1) if self.small else numbers

    def integers(self, axes: str, low: int, high: int) -> Tensor:
        """Return integers from low to high - 1 of the named shape."""
        return torch.randint(low, high, self.shape(axes), generator=self.generator)

    def some(self, items: list) -> list:
        """Return the whole list; in a small draw, one or two adjacent items."""
        if not self.small:
            return items
        count, first = self.size("count") - 1, self.size("first") - 2
        return items[first : first + count]

    def booleans(self, axes: str) -> Tensor:
        """Return random booleans of the named shape."""
        return self.integers(axes, 0, 2).bool()


class Tried(partial):
    """A function under its exercise's trial: maps inputs to what is compared."""


Call = Callable[..., Any]
Invariant = Callable[[Call, tuple, Any], str | None]


def breaks(mistake: str) -> Callable[[Invariant], Invariant]:
    """Name the mistake that breaks a rule."""

    def named(rule: Invariant) -> Invariant:
        """Attach the mistake to the rule."""
        rule.mistake = mistake
        return rule

    return named


@dataclass(frozen=True)
class Exercise:
    """One function for the learner to write.

    Args:
        name: the function's name, and the exercise's.
        marked: the function with its wrong turns marked by `choose`.
        reference: the package's own function, "module:function". It is loaded when first needed,
            and its source is the solution.
        make_inputs: turns a draw into the function's arguments.
        returns: each returned value's name and the names of its axes, in order.
        hints: from a nudge to nearly the answer.
        helpers: functions of the package whose source also belongs to the solution.
        invariants: rules that every right result obeys: functions of the answer, its arguments and
            its result that return what is wrong, or `None`; `breaks` names them.
        draws: how many draws an answer is tried on.
        trial: for a function that acts on its arguments: takes the function and the inputs, calls
            the function, and returns what is compared.
        passes: what `check` says of an answer that passes, if that isn't that it equals the
            package's own.
    """

    name: str
    marked: Callable
    reference: str
    make_inputs: Callable[[Draw], tuple]
    returns: Mapping[str, str]
    hints: tuple[str, ...]
    helpers: tuple[str, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    draws: int = DRAWS
    trial: Callable | None = None
    passes: str = ""

    def tried(self, function: Callable) -> Callable:
        """Return a function to call with the inputs: the function itself, or under its trial."""
        if self.trial is None or isinstance(function, Tried):
            return function
        return Tried(self.trial, function)

    def tried_reference(self) -> Callable:
        """Return the package's own function, under the trial if there is one."""
        return self.tried(self.load_reference())

    def load_reference(self) -> Callable:
        """Import and return the package's own function."""
        return load(self.reference)

    def load_helpers(self) -> list[Callable]:
        """Import and return the functions that the reference relies on."""
        return [load(helper) for helper in self.helpers]


def exercise(**fields) -> Callable[[Call], Exercise]:
    """Turn a marked function into an exercise; the fields are those of `Exercise`."""
    return lambda marked: Exercise(name=marked.__name__, marked=marked, **fields)


def load(name: str) -> Callable:
    """Import and return a function given as "module:function"."""
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)
