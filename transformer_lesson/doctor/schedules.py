"""Probe: does the learning rate do what it should?"""

import math
from collections.abc import Iterator

from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.patient import Patient

HUGE = 0.1  # for Adam, whose steps are about as large as the rate
STEEP = 2.2  # times the next drop: a cosine's and a line's first ones are no larger
Said = Iterator[tuple[str, str]]


def schedule(patient: Patient) -> Iterator[Finding]:
    """Read the learning rate at every step."""
    rate_at, steps = patient.given.need("schedule", "steps")
    rates = [float(rate_at(step)) for step in range(steps)]
    picture = Picture("line", rates, "Learning rate by step")
    for code, moved in (*_level(rates), *_end(rates), *_after_the_peak(rates), *_cliffs(rates)):
        yield Finding(code, f"The rate of all {steps} steps was read.", moved, picture=picture)
    name = type(patient.given.optimizer).__name__
    if "adam" in name.lower() and max(rates) > HUGE:
        moved = f"It reaches {max(rates):.2g}: so far {name} moves every weight in a step."
        yield Finding("rate_huge", "The highest rate was read.", moved, picture=picture)


def _level(rates: list[float]) -> Said:
    """Whether it climbs to the end, never changes, or ends while it is high."""
    peak, last = max(rates), rates[-1]
    if rates.index(peak) >= 0.9 * len(rates) and rates[0] < 0.9 * peak:
        yield "schedule_never_peaks", f"At the end it still climbs, at {peak:.2g}."
    elif min(rates[rates.index(peak) :]) > peak * (1 - 1e-6):
        since = f"from step {rates.index(peak)} on" if rates[0] < peak else "throughout"
        yield "schedule_constant", f"It's {peak:.2g} {since}."
    elif last > 0.5 * peak and last < rates[-2] and not _noam(rates):
        share = f"{last / peak:.0%}"
        yield "schedule_unfinished", f"At the end it still falls, and is {share} of its peak."


def _noam(rates: list[float]) -> bool:
    """Whether the rate falls as 1/√step, which has no end."""
    half, last = len(rates) // 2, len(rates)
    return abs(rates[half - 1] / rates[-1] / math.sqrt(last / half) - 1) < 0.02


def _end(rates: list[float]) -> Said:
    peak, last, steps = max(rates), rates[-1], len(rates)
    end = next((i for i in range(steps) if max(rates[i:]) - min(rates[i:]) <= 1e-3 * peak), steps)
    if end < 0.7 * steps and last < 0.2 * peak:
        yield "schedule_ends_early", f"From step {end} on it stays at {last:.2g}."


def _after_the_peak(rates: list[float]) -> Said:
    """Whether it jumps where the warm-up ends, or falls to its least and climbs again."""
    peak = max(rates)
    top = rates.index(peak)
    drops = [a - b for a, b in zip(rates[top:], rates[top + 1 :], strict=False)][:2]
    rises = [b - a for a, b in zip(rates[:top], rates[1 : top + 1], strict=True)]
    if len(drops) == 2 and drops[0] > max(0.01 * peak, STEEP * abs(drops[1])):
        first, then = (f"{drop / peak:.1%}" for drop in drops)
        yield "schedule_jumps", f"After step {top} it drops by {first}, then by {then}."
    elif len(rises) > 2 and rises[-1] > max(0.2 * peak, 3 * max(rises[:-1])):
        yield "schedule_jumps", f"At step {top} it rises by {rises[-1] / peak:.0%} of its peak."
    lowest = min(range(top, len(rates)), key=rates.__getitem__)
    climbs = [b - a for a, b in zip(rates[lowest:], rates[lowest + 1 :], strict=False)]
    if climbs and rates[-1] > rates[lowest] + 0.005 * peak and max(climbs) < 0.2 * peak:
        yield "schedule_restarts", f"It is lowest at step {lowest}, and climbs again."


def _cliffs(rates: list[float]) -> Said:
    falls = [i for i in range(1, len(rates)) if rates[i] < 0.5 * rates[i - 1]]
    cliffs = [i for i in falls if max(rates[i:]) > 1.5 * rates[i]]
    if len(cliffs) > 1:
        yield "schedule_restarts", f"It falls at steps {cliffs[:3]} and climbs again."
