"""Timing several things in turns, so that a busy machine slows them all equally."""

import statistics
import time
from collections.abc import Callable, Sequence

from tqdm import tqdm

Judged = tuple[str, str, bool]
"""The goal, the measurement, and whether it is enough: the end of a `Row`."""


def interleaved(
    runs: dict[str, Callable[[], object]], rounds: int, warm_up: int = 2
) -> dict[str, list[float]]:
    """Return the seconds of each call. A round calls everything once, every other round backwards.

    Args:
        runs: name to what is timed.
        rounds: how many times are returned for each.
        warm_up: rounds before those, which are discarded.
    """
    seconds = {name: [] for name in runs}
    for number in tqdm(range(warm_up + rounds), ", ".join(runs), leave=False):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: values[warm_up:] for name, values in seconds.items()}


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Divide round by round: what slows a whole round cancels out."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Return the median and the quartiles of the values."""
    low, middle, high = (form.format(v) for v in statistics.quantiles(values, method="inclusive"))
    return f"**{middle}** ({low} to {high})"


def at_most(limit: float, values: Sequence[float], form: str = "{:.2f}") -> Judged:
    """Judge whether the median is small enough."""
    return f"at most {form.format(limit)}", spread(values, form), statistics.median(values) <= limit


def at_least(limit: float, values: Sequence[float], form: str = "{:.2f}") -> Judged:
    """Judge whether the median is large enough."""
    reach = f"at least {form.format(limit)}"
    return reach, spread(values, form), statistics.median(values) >= limit
