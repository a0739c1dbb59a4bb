"""Comparing two results: are they the same, and if not, how do they differ?

A wrong type, shape or dtype is raised as `Failed`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Failed, call
from transformer_lesson.files import printable
from transformer_lesson.ranking import first_largest

RELATIVE, ABSOLUTE = 1e-4, 1e-5  # reordering float32 sums changes them by about 1e-6


def gradient_to(leaf: Tensor, result: Tensor) -> Tensor | None:
    """Return the gradient of a result's sum of squares at a leaf; `None` if there is none.

    Raises:
        Failed: a tensor of the graph was changed in place, so backward fails.
    """
    if not result.requires_grad:
        return None
    total = result.square().sum()
    return call(lambda: torch.autograd.grad(total, leaf, allow_unused=True)[0], ())


class NotANumber(Failed):
    """A result has a NaN that should not be there."""


def named_shape(shape: tuple[int, ...], sizes: Mapping[str, int]) -> str:
    """Return a shape with the names of axes identified by their size, "(batch 3, n 7, 10)"."""
    names = {size: [n for n, s in sizes.items() if s == size] for size in shape}
    axes = [f"{names[s][0]} {s}" if len(names[s]) == 1 else str(s) for s in shape]
    return f"({', '.join(axes)})"


def named_place(place: Sequence[int], axes: str, sizes: Mapping[str, int]) -> str:
    """Return an index with the names of its axes, "batch 0, query 2".

    Args:
        place: the index.
        axes: the names of the last axes.
        sizes: the sizes of the draw's axes by name; the leading axes come first.
    """
    names = axes.split()
    names = [*sizes][: len(place) - len(names)] + names
    return ", ".join(f"{axis} {i}" for axis, i in zip(names, place, strict=True))


def as_parts(result: Any, returns: Mapping[str, str]) -> list[Any]:
    """Return the returned values as a list, one for each name in `returns`."""
    if len(returns) == 1:
        return [result]
    if not isinstance(result, tuple | list) or len(result) != len(returns):
        raise Failed(
            f"Return {len(returns)} values, ({', '.join(returns)}). Yours is {_kind(result)}."
        )
    return list(result)


def match_form(name: str, expected: Any, yours: Any, sizes: Mapping[str, int]) -> Any:
    """Check type, device, dtype and shape; return yours, ready to compare by value."""
    if isinstance(expected, Tensor):
        return _match_tensor(name, expected, yours, sizes)
    if isinstance(expected, list):
        return _match_list(name, expected, whole_as_float(expected, yours))
    if (
        isinstance(yours, Tensor)
        and not yours.is_meta
        or isinstance(yours, np.ndarray | np.generic)
    ):
        yours = yours.item() if yours.ndim == 0 else yours
    yours = whole_as_float(expected, yours)
    if type(yours) is not type(expected):
        raise Failed(f"`{name}` must be {with_article(expected)}. Yours is {_kind(yours)}.")
    return _require_63_bits(name, yours)


def _match_tensor(name: str, expected: Tensor, yours: Any, sizes: Mapping[str, int]) -> Tensor:
    if not isinstance(yours, Tensor):
        numpys = isinstance(yours, np.ndarray)
        remedy = "; torch.from_numpy turns it into a tensor" if numpys else ""
        raise Failed(f"`{name}` must be a torch.Tensor. Yours is {_kind(yours)}{remedy}.")
    same_layout = yours.layout == expected.layout and not yours.is_nested
    if yours.device != expected.device or not same_layout:
        raise Failed(
            f"`{name}` must be on the inputs' device, {expected.device}, and not sparse "
            f"or nested. Yours is on {yours.device}, "
            f"{'nested' if yours.is_nested else yours.layout}."
        )
    allowed = {expected.dtype}
    if expected.is_floating_point():
        allowed |= {torch.float32, torch.float64}
    if yours.dtype not in allowed:
        raise Failed(f"`{name}` must have dtype {expected.dtype}. Yours has {yours.dtype}.")
    if yours.shape != expected.shape:
        raise Failed(
            f"`{name}` must have shape {named_shape(expected.shape, sizes)}; "
            f"yours is {named_shape(yours.shape, sizes)}."
        )
    if yours.isnan().any():
        raise NotANumber(
            f"{int(yours.isnan().sum())} of {yours.numel()} numbers in `{name}` are NaN.\n"
            "NaN comes from 0 / 0, from the root of a negative number, or from a softmax over "
            "nothing but minus infinity."
        )
    return plain(yours).detach().clone(memory_format=torch.contiguous_format)  # in its own buffer


def is_readable(value: Any) -> bool:
    """Return whether a value is a tensor whose elements can be read one by one."""
    if not isinstance(value, Tensor) or value.is_nested:
        return False
    return value.is_cpu and value.layout == torch.strided


def whole_as_float(expected: Any, yours: Any) -> Any:
    """Return yours with whole numbers as floats where floats are expected (`return 1`)."""
    if isinstance(expected, tuple | list) and isinstance(yours, tuple | list):
        if len(expected) != len(yours):
            return yours
        return [*map(whole_as_float, expected, yours)]
    is_whole = type(expected) is float and type(yours) is int and yours.bit_length() < 64
    return float(yours) if is_whole else yours


def plain(numbers: Tensor) -> Tensor:
    """Return a parameter or tensor subclass as a plain tensor, with its graph."""
    return numbers if type(numbers) is Tensor else numbers.as_subclass(Tensor)


def _match_list(name: str, expected: list, yours: Any) -> list:
    """Check a list and its items, which must be like the first expected item, if any."""
    kind = _named_items(expected[0]) if expected else ""
    if not isinstance(yours, list | tuple):
        of_kind = f" of {kind}" if kind else ""
        raise Failed(f"`{name}` must be a list{of_kind}. Yours is {_kind(yours)}.")
    for i, item in enumerate(yours):
        if expected and not _is_like(expected[0], item):
            item_type = with_article(item)
            text = f"`{name}` must hold only {kind}. Yours has {item_type} at {i}."
            raise Failed(text, f"{item_type} in a list of {kind}")
        _require_63_bits(name, item)
    return list(yours)


def _named_items(first: Any) -> str:
    """Return the name of a list's item type."""
    if isinstance(first, tuple):
        return f"tuples of {len(first)} {_named_items(first[0])}"
    return type(first).__name__


def _is_like(expected: Any, item: Any) -> bool:
    """Return whether an item has the same type; a list may replace a tuple of its length."""
    if not isinstance(expected, tuple):
        return type(item) is type(expected)
    of_length = isinstance(item, tuple | list) and len(item) == len(expected)
    return of_length and all(map(_is_like, expected, item))


def _require_63_bits(name: str, yours: Any) -> Any:
    """Return the value; raise `Failed` for integers of more than 63 bits, too large to compare."""
    if isinstance(yours, int) and yours.bit_length() > 63:
        raise Failed(
            f"`{name}` must fit in 63 bits. Yours has a number of {yours.bit_length()} bits."
        )
    return yours


def same(one: Any, other: Any, relative: float = RELATIVE, absolute: float = ABSOLUTE) -> bool:
    """Return whether two values are equal up to rounding; NaN equals NaN.

    Integers and booleans must match exactly. Precision does not matter, type does: 1 is neither 1.0
    nor True. A tuple may replace a list. Functions and other objects only equal themselves.

    Args:
        one, other: tensors, numbers, texts, or lists, tuples and dictionaries of them.
        relative, absolute: tolerances for tensors as in `torch.allclose`; `absolute` is scaled by
            the largest number if that exceeds 1. Single numbers use `relative` alone. With 0 and 0
            not even rounding is allowed.
    """
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if _form(one) != _form(other) or not one.is_floating_point():
            return _form(one) == _form(other) and torch.equal(one, other)
        return torch.allclose(
            one.double(), other.double(), relative, absolute * _largest(one), equal_nan=True
        )
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(*pair, relative, absolute) for pair in pairs)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            same(one[key], other[key], relative, absolute) for key in one
        )
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=relative) or (one != one and other != other)
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other)
    return one == other if isinstance(one, int | str) else one is other


def _largest(numbers: Tensor) -> float:
    """Return the largest finite magnitude, between 1 and 1000 (masking values may be -1e9)."""
    finite = numbers[numbers.isfinite()].double().abs()
    return finite.max().clamp(1.0, 1000.0).item() if len(finite) else 1.0


def _form(numbers: Tensor) -> tuple:
    kind = "float" if numbers.is_floating_point() else numbers.dtype
    shape = "nested" if numbers.is_nested else numbers.shape
    return shape, kind, numbers.device, numbers.layout


def difference(expected: Any, yours: Any, axes: str, sizes: Mapping[str, int]) -> str:
    """Say in one sentence how much two results of the same form differ, and where most.

    Args:
        expected, yours: the results.
        axes, sizes: as for `named_place`.
    """
    if isinstance(expected, list) and len(yours) != len(expected):
        return f"The length must be {len(expected)}; yours is {len(yours)}."
    if isinstance(expected, str):
        return "The two texts differ."
    if isinstance(expected, list) and not all(isinstance(item, int | float) for item in expected):
        pairs = zip(expected, yours, strict=True)
        first = next(i for i, pair in enumerate(pairs) if not same(*pair))
        return f"They differ first at {named_place([first], axes, sizes)}."
    expected, yours = torch.as_tensor(expected), torch.as_tensor(yours)
    gap = (yours.double() - expected.double()).abs()
    gap[yours == expected] = 0.0  # infinity minus infinity is NaN
    worst = np.unravel_index(int(first_largest(gap.flatten())), tuple(gap.shape))
    place = named_place([int(i) for i in worst], axes, sizes)
    if expected.dtype == torch.bool:
        return f"{int(gap.sum())} of {gap.numel()} wrong{f', one at {place}' if place else ''}."
    return f"Largest difference {gap.max():.4g}{f' at {place}' if place else ''}."


def _kind(value: Any) -> str:
    if value is None:
        return "None; every path through the function must end in `return`"
    if isinstance(value, np.ndarray):
        return "a numpy array"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return with_article(value)


def with_article(value: Any) -> str:
    """Return a value's type with an article: "a list", "an int"."""
    if value is None:
        return "None"
    name = printable(type(value).__name__, 60)
    return f"an {name}" if name[:1] in tuple("aeiou") else f"a {name}"
