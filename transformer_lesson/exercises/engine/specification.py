"""What an exercise consists of: its reference, its random inputs, its rules, hints, wrong turns."""

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
    """One draw of random inputs, in which every named axis has a prime size of its own.

    Distinct sizes keep a swapped axis from passing unseen, and they let a message name the
    axes of a wrong shape: where only `head` has size 3, a 3 is the head axis.

    Args:
        number: seeds the draw; exercises also use it to vary what they draw (which mask, ...).
        small: instead of a prime the batch gets the first of these sizes and the other axes the
            others, in turn; numbers are rounded to one decimal, so that the draw can be printed.
        seed: of a draw that `check` never shows, which is otherwise of the kind of that number.
    """

    def __init__(self, number: int, small: tuple[int, ...] = (), seed: int | None = None):
        self.number, self.small, self.seed = number, small, seed
        self.sizes: dict[str, int] = {}
        self.generator = torch.Generator().manual_seed(number if seed is None else seed)
        order = torch.randperm(len(PRIMES), generator=self.generator)
        self._unused = [PRIMES[i] for i in order]

    def size(self, axis: str, at_least: int = 1) -> int:
        """Return the size of an axis; the first call chooses it."""
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
        """Return one of several options, each in its turn."""
        return options[self.number % len(options)]

    def unless_unseen(self, usual: int, low: int, high: int) -> int:
        """Return what `check` shows; in a draw with a seed, an integer from low to high."""
        return usual if self.seed is None else int(self.integers("", low, high + 1))

    def shape(self, axes: str) -> tuple[int, ...]:
        """Return the sizes of axes given as one string, such as "batch n d_model" or "1 n"."""
        return tuple(int(axis) if axis.isdigit() else self.size(axis) for axis in axes.split())

    def normal(self, axes: str) -> Tensor:
        """Return normally distributed numbers, shape as named."""
        numbers = torch.randn(self.shape(axes), generator=self.generator)
        return numbers.round(decimals=1) + 0.0 if self.small else numbers  # no -0.0

    def positive(self, axes: str) -> Tensor:
        """Return numbers between 0.5 and 1.5, shape as named."""
        numbers = 0.5 + torch.rand(self.shape(axes), generator=self.generator)
        return numbers.round(decimals=1) if self.small else numbers

    def integers(self, axes: str, low: int, high: int) -> Tensor:
        """Return integers from low to high - 1, shape as named."""
        return torch.randint(low, high, self.shape(axes), generator=self.generator)

    def some(self, items: list) -> list:
        """Return a list whole; where the draw is small, one or two neighbors in it."""
        if not self.small:
            return items
        count, first = self.size("count") - 1, self.size("first") - 2
        return items[first : first + count]

    def booleans(self, axes: str) -> Tensor:
        """Return `True` and `False` with equal chances, shape as named."""
        return self.integers(axes, 0, 2).bool()


class Tried(partial):
    """A trial of a function: takes an exercise's inputs and gives what is compared."""


Call = Callable[..., Any]
Invariant = Callable[[Call, tuple, Any], str | None]


def breaks(mistake: str) -> Callable[[Invariant], Invariant]:
    """Give a rule the name of the mistake that breaks it."""

    def named(rule: Invariant) -> Invariant:
        """Return the rule with its mistake."""
        rule.mistake = mistake
        return rule

    return named


@dataclass(frozen=True)
class Exercise:
    """One function for the learner to write.

    Args:
        name: the function's name, and the exercise's.
        marked: the function with its wrong turns marked by `choose`.
        reference: where the package's own function is, "module:function". It is looked up
            when it is first needed, and its source is the solution.
        make_inputs: turns a draw into the function's arguments.
        returns: each returned value's name and the names of its axes, in order.
        hints: from a nudge to nearly the answer.
        helpers: functions of the package whose source belongs to the solution too.
        invariants: rules that every right result obeys, each a function of the answer, its
            arguments and its result that returns what is wrong, or `None`; `breaks` names them.
        start: the function with a bug from which the learner sets out, "module:function". An
            exercise without one starts from an empty body.
        draws: how many draws an answer is tried on.
        trial: for a function whose effect is on what it is given: calls it, as its first argument,
            with what it makes of the inputs, and returns what is compared.
    """

    name: str
    marked: Callable
    reference: str
    make_inputs: Callable[[Draw], tuple]
    returns: Mapping[str, str]
    hints: tuple[str, ...]
    helpers: tuple[str, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    start: str = ""
    draws: int = DRAWS
    trial: Callable | None = None

    def tried(self, function: Callable) -> Callable:
        """Return what is called with inputs and compared: a function itself, or its trial."""
        if self.trial is None or isinstance(function, Tried):
            return function
        return Tried(self.trial, function)

    def tried_reference(self) -> Callable:
        """Return what the package's own function is compared by."""
        return self.tried(self.load_reference())

    def load_reference(self) -> Callable:
        """Import and return the package's own function."""
        return load(self.reference)

    def load_start(self) -> Callable | None:
        """Import and return the function with a bug, if the exercise starts from one."""
        return load(self.start) if self.start else None

    def load_helpers(self) -> list[Callable]:
        """Import and return the functions that the reference leans on."""
        return [load(helper) for helper in self.helpers]


def exercise(**fields) -> Callable[[Call], Exercise]:
    """Make an exercise of a marked function; the fields are those of `Exercise`."""
    return lambda marked: Exercise(name=marked.__name__, marked=marked, **fields)


def load(name: str) -> Callable:
    """Import and return a function given as "module:function"."""
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)
