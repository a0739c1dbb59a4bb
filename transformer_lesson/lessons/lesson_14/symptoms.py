"""The measurements of each probe on each fault of the clinic, and the cheapest way to tell one.

`measure_sick_runs` stored them in sick_runs.json.
"""

import itertools
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from transformer_lesson.caching import copied
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import HEALTHY, PATIENTS, Case
from transformer_lesson.stored import read_stored

STORED = Path(__file__).with_name("sick_runs.json")
LIKE, HIGHER, LOWER = "as healthy", "higher", "lower"
IN_TABLE = range(3)
"""Seeds from which all probes were taken, of the healthy program and of the patients."""
COSTS = {probe: measure.cost for probe, measure in MEASURES.items()}


@copied
def stored() -> dict[str, dict]:
    """Return the stored results of the healthy program and of each fault, by name.

    Each has `losses` (nats, every second step), `evaluation` (nats), `sentences`, and `probes`,
    a number for each probe. The healthy one and the patients also have `more seeds`, the same
    numbers from seeds 1 and 2. Four have `seeds`, the evaluation from seeds 0 to 10, and the
    healthy one its number of `idle heads` from each of them.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_sick_runs")


@cache
def _measured(seed: int = 0) -> Mapping[str, Mapping[str, float]]:
    """Return each probe's number by program name; cached, so do not change it."""
    runs = {name: [run["probes"], *run["more seeds"]] for name, run in stored().items()}
    return MappingProxyType(
        {name: MappingProxyType(by_seed[seed]) for name, by_seed in runs.items() if by_seed[seed:]}
    )


@cache
def limits(probe: str, seed: int = 0) -> tuple[float, float]:
    """Return the lowest and the highest number of a probe that still count as healthy.

    A seed alone moves the loss at the end, so a run from another seed is compared with all of the
    healthy program's runs, from seeds 0 to 10; other probes with its run from the same seed.
    """
    another = probe == "another seed"
    runs = stored()[HEALTHY]["seeds"] if another else [_measured(seed)[HEALTHY][probe]]
    return min(runs) - MEASURES[probe].near, max(runs) + MEASURES[probe].near


def said(probe: str, fault: str, seed: int = 0) -> str:
    """Return a probe's outcome for a fault, compared with the healthy program.

    Returns:
        "as healthy", "higher" or "lower".
    """
    value, (low, high) = _measured(seed)[fault][probe], limits(probe, seed)
    if low <= value <= high:
        return LIKE
    return HIGHER if value > high else LOWER


def unhealthy(probe: str, patient: str) -> list[str]:
    """Return a probe's outcomes that are not healthy, of those from the table's seeds."""
    return [word for seed in IN_TABLE if (word := said(probe, patient, seed)) != LIKE]


def outcomes(suspects: tuple[str, ...] = PATIENTS) -> dict[str, dict[str, str]]:
    """Return each probe's outcome for each suspect, in the form `next_probe` takes."""
    return {probe: {suspect: said(probe, suspect) for suspect in suspects} for probe in MEASURES}


def tells_apart(probe: str, one: str, other: str) -> bool:
    """Return whether a probe's outcomes for two faults differ, or, of things counted, its numbers.

    Both may be lower than the healthy number; who counts 14 and 6 can still tell them apart.
    """
    counts = MEASURES[probe].digits == 0
    apart = abs(_measured()[one][probe] - _measured()[other][probe])
    return said(probe, one) != said(probe, other) or (counts and apart > MEASURES[probe].near)


def cheapest(case: Case) -> tuple[str, ...]:
    """Return the cheapest probes that tell the guilty suspect from all others.

    The choice uses the knowledge of who is guilty. Ties go to the fewest probes, then to the order
    in `MEASURES`.
    """
    innocent = [suspect for suspect in case.suspects if suspect != case.guilty]
    singles = {
        probe: {suspect for suspect in innocent if tells_apart(probe, suspect, case.guilty)}
        for probe in MEASURES
    }
    useful = [probe for probe in MEASURES if singles[probe]]
    sets = (
        chosen
        for count in range(1, len(innocent) + 1)
        for chosen in itertools.combinations(useful, count)
        if len(set().union(*(singles[probe] for probe in chosen))) == len(innocent)
    )
    return min(sets, key=lambda chosen: sum(COSTS[probe] for probe in chosen))
