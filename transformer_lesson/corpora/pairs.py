"""A sentence and its translation: what every corpus of translations is a list of."""

import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation.

    `alignment` says which words belong together, as (index of the source word, index of the
    target word); it is empty where nobody knows.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] = ()


def without_blanks(rows: Iterable[tuple[str, str]], name: str) -> Iterator[Pair]:
    """The rows that have text on both sides, as pairs; at the end a warning counts the others.

    Args:
        rows: source and target of each line.
        name: what the warning calls the place that the rows come from.
    """
    both = one = first = 0
    for number, (source, target) in enumerate(rows, start=1):
        source, target = source.strip(), target.strip()
        if source and target:
            yield Pair(source, target)
            continue
        first = first or number
        both += not source and not target
        one += bool(source or target)
    if first:
        warnings.warn(
            f"{name}: left out {both:,} empty lines and {one:,} lines with text on one side only, "
            f"the first of them line {first:,}.",
            stacklevel=4,  # the reader of the rows, its caller, and the line that asked for pairs
        )
