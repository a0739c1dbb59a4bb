"""Naming the mistake in a result's form: its type, dtype or shape."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_lesson.exercises.engine.compare import is_readable, same, with_article
from transformer_lesson.exercises.engine.wording import Turn, counted

KINDS = {torch.bool: "booleans", torch.float32: "numbers with decimals"}


def mistaken_form(
    expected: Any, yours: Any, name: str, axes: str, sizes: Mapping[str, int]
) -> Turn | None:
    """Return the mistake in the form of one returned value; `None` if there is none.

    Args:
        expected, yours: the value.
        name: of the value.
        axes: the names of its last axes.
        sizes: the sizes of the draw's axes by name.
    """
    if yours is None and expected is not None:
        why = "A function without `return`, or a path through it that has none, gives None."
        return Turn("a missing `return`", why)
    if isinstance(expected, Tensor):
        if expected.ndim and isinstance(yours, bool | int | float):
            order = ", ".join(_named(expected.shape, axes, sizes))
            why = (
                f"The axes of `{name}` are ({order}): which one do you sum, average or choose from?"
            )
            return Turn(f"one number for all of `{name}`", why)
        return _of_tensor(expected, yours, name, _named(expected.shape, axes, sizes), sizes)
    if isinstance(expected, list) and not isinstance(yours, list | tuple):
        how = (
            "`.split()` makes one of the words of a text." if isinstance(yours, str) else MAKE_LIST
        )
        return Turn(f"{_kind(yours)} instead of a list", f"`{name}` is a list; {how}")
    if isinstance(expected, bool | int | float) and isinstance(yours, Tensor | np.ndarray | list):
        why = f"`{name}` is a single number. Which axis is not summed, averaged or chosen from yet?"
        return Turn(f"{_kind(yours)} instead of one number", why)
    if isinstance(expected, float) and type(yours) is not float:
        return Turn(f"{_kind(yours)} instead of a number", f"`{name}` is a number with decimals.")
    return None


def limit_of_lists(expected: list[Any], yours: list[Any], name: str) -> Turn | None:
    """Report that all lists are cut off at the same length; `None` if that isn't the mistake.

    Args:
        expected, yours: the results, draw by draw.
        name: of the value.
    """
    if not all(isinstance(value, list) for value in [*expected, *yours]):
        return None
    pairs = list(zip(expected, yours, strict=True))
    lengths = {len(mine) for right, mine in pairs if not same(mine, right)}
    if len(lengths) != 1 or lengths == {0}:
        return None
    (most,) = lengths
    if not all(same(mine, right[:most]) for right, mine in pairs):
        return None
    why = f"Your `{name}` ends after {most} items, however many there are. What counts to {most}?"
    return Turn(f"a limit of {most} items", why)


MAKE_LIST = "`list(...)` makes one of what a loop goes through, `.tolist()` of a tensor."


def _of_tensor(
    expected: Tensor, yours: Any, name: str, named: list[str], sizes: Mapping[str, int]
) -> Turn | None:
    if isinstance(yours, list) and _all_as_deep(yours, expected):
        several = counted(len(yours), "value")
        return Turn(f"{several} instead of one", f"Return `{name}` alone, without the others.")
    if not isinstance(yours, Tensor):
        why = f"`{name}` is a `torch.Tensor`: build it with tensor operations."
        return Turn(f"{_kind(yours)} instead of a tensor", why)
    if not is_readable(yours):
        return None
    if yours.shape != expected.shape:
        return _of_shape(expected, yours, name, named, sizes)
    both = expected.is_floating_point() and yours.is_floating_point()
    if yours.dtype != expected.dtype and not (both and yours.dtype != torch.float16):
        right = "True and False" if expected.dtype == torch.bool else f"`{expected.dtype}`"
        why = f"`{name}` has the dtype `{yours.dtype}`, and what goes on with it needs {right}."
        return Turn(f"`{yours.dtype}` instead of {right}", why)
    return None


def _all_as_deep(values: list, expected: Tensor) -> bool:
    """Return whether all values are tensors with as many axes as expected, or more: no rows."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    return 1 < len(values) == len(tensors) and all(
        tensor.ndim >= expected.ndim for tensor in tensors
    )


def _of_shape(
    expected: Tensor, yours: Tensor, name: str, named: list[str], sizes: Mapping[str, int]
) -> Turn:
    """Say which axes are missing, superfluous, swapped, joined, or of the wrong size."""
    right, mine = list(expected.shape), list(yours.shape)
    differing = [i for i in range(len(right)) if len(right) == len(mine) and right[i] != mine[i]]
    if len(differing) == 1:
        (dim,) = differing
        return _of_size(name, named, dim, right[dim], mine[dim], sizes)
    lost, more = Counter(right) - Counter(mine), Counter(mine) - Counter(right)
    missing = [axis for axis, size in zip(named, right, strict=True) if _take(lost, size)]
    order = "(" + ", ".join(named) + ")"
    if not missing and not more:
        return Turn("axes in another order", f"The axes of `{name}` are {order}, in this order.")
    if missing and not more:
        return _lost(expected, yours, name, named, missing)
    if not missing:
        extra = " and ".join("of size 1" if size == 1 else str(size) for size in more.elements())
        which = "an axis of size 1" if set(more) == {1} else "an axis"
        return Turn(f"{which} too many", f"`{name}` has no axis {extra}: its axes are {order}.")
    if len(missing) == 1 and len(mine) > len(right) and expected.numel() == yours.numel():
        why = f"The axes of `{name}` are {order}: flatten what belongs together."
        return Turn(f"{missing[0]} split into several axes", why)
    if len(missing) > 1 and len(more) == 1 and expected.numel() == yours.numel():
        why = f"Joined into one, {' and '.join(missing)} can't be told apart. The axes are {order}."
        return Turn(f"{' and '.join(missing)} in one axis", why)
    return Turn(f"another shape for `{name}`", f"Its axes are {order}.")


def _of_size(
    name: str, named: list[str], dim: int, size: int, there: int, sizes: Mapping[str, int]
) -> Turn:
    """Say how one axis has the wrong size."""
    axis, why = (
        named[dim],
        f"Along {named[dim]}, `{name}` has {counted(size, 'place')}. Yours has {there}.",
    )
    if abs(there - size) == 1 and size > 1:
        return Turn(f"one {axis} too {'many' if there > size else 'few'}", why)
    instead = [other for other, length in sizes.items() if length == there and there > 1]
    if len(instead) == 1:
        return Turn(f"{instead[0]} places along {axis}", why)
    return Turn(f"another size along {axis}", why)


def _lost(expected: Tensor, yours: Tensor, name: str, named: list[str], missing: list[str]) -> Turn:
    """Say which axes a result lost, and if possible how."""
    lost = " and ".join(missing)
    if len(missing) > 1 or expected.size(named.index(missing[0])) == 1:
        single = len(missing) == 1
        why = f"The axes of `{name}` are ({', '.join(named)}): one of size 1 is an axis, too."
        return Turn(f"{'an axis' if single else 'axes'} missing: {lost}", why)
    dim = named.index(lost)
    if expected.is_floating_point():
        for did, reduced in (
            ("summed", expected.sum(dim)),
            ("averaged", expected.mean(dim)),
            ("the maximum of", expected.amax(dim)),
        ):
            if same(reduced, yours):
                words = f"{lost} {did}" if not did.endswith("of") else f"the maximum over {lost}"
                return Turn(f"{words} too much", f"`{name}` keeps its axis {lost}.")
    for which, index in (("first", 0), ("last", -1)):
        if same(expected.select(dim, index), yours):
            return Turn(f"the {which} {lost} alone", f"`{name}` keeps its axis {lost}, all of it.")
    return Turn(f"an axis missing: {lost}", f"The axes of `{name}` are ({', '.join(named)}).")


def _take(counted: Counter, size: int) -> bool:
    present = counted[size] > 0
    counted[size] -= present
    return present


def _named(shape: tuple[int, ...], axes: str, sizes: Mapping[str, int]) -> list[str]:
    names = axes.split()
    return ([*sizes][: max(0, len(shape) - len(names))] + names)[: len(shape)]


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    if isinstance(value, np.ndarray):
        return "a NumPy array"
    kinds = {str: "a text", bool: "a truth", int: "a whole number", float: "a number"}
    return kinds.get(type(value)) or with_article(value)
