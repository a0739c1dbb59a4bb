"""The measurements of each probe on each fault of the clinic, and the learner's table of them.

`measure_sick_runs` stored them in sick_runs.json.
"""

import itertools
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from transformer_lesson.caching import copied
from transformer_lesson.exercises.engine.collection import FOLDER, collection_folder
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.files import write_atomically
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import HEALTHY, PATIENTS, Case
from transformer_lesson.stored import read_stored

STORED = Path(__file__).with_name("sick_runs.json")
FILE = "symptoms.json"
LIKE, HIGHER, LOWER = "as healthy", "higher", "lower"
COSTS = {probe: one.cost for probe, one in MEASURES.items()}
SHOWN = 4  # most mistakes reported at once

Table = Mapping[str, Mapping[str, str]]


@copied
def stored() -> dict[str, dict]:
    """Return the stored results of the healthy program and of each fault, by name.

    Each has `losses` (nats, every second step), `evaluation` (nats), `sentences`, and `probes`,
    a number for each probe.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_sick_runs")


@cache
def _measured() -> Mapping[str, Mapping[str, float]]:
    """Return each probe's number by program name; cached, so do not change it."""
    return MappingProxyType(
        {name: MappingProxyType(one["probes"]) for name, one in stored().items()}
    )


def said(probe: str, fault: str) -> str:
    """Return a probe's outcome for a fault, compared with the healthy program.

    Returns:
        "as healthy", "higher" or "lower".
    """
    value, healthy = (_measured()[name][probe] for name in (fault, HEALTHY))
    if abs(value - healthy) <= MEASURES[probe].near:
        return LIKE
    return HIGHER if value > healthy else LOWER


def outcomes(suspects: tuple[str, ...] = PATIENTS) -> dict[str, dict[str, str]]:
    """Return each probe's outcome for each suspect, in the form `next_probe` takes."""
    return {probe: {one: said(probe, one) for one in suspects} for probe in MEASURES}


def cheapest(case: Case) -> tuple[str, ...]:
    """Return the cheapest probes that tell the guilty suspect from all others.

    The choice uses the knowledge of who is guilty. Ties go to the fewest probes, then to the order
    in `MEASURES`.
    """
    says, others = outcomes(case.suspects), [one for one in case.suspects if one != case.guilty]
    singles = {
        probe: {one for one in others if says[probe][one] != says[probe][case.guilty]}
        for probe in MEASURES
    }
    useful = [probe for probe in MEASURES if singles[probe]]
    sets = (
        chosen
        for count in range(1, len(others) + 1)
        for chosen in itertools.combinations(useful, count)
        if len(set().union(*(singles[probe] for probe in chosen))) == len(others)
    )
    return min(sets, key=lambda chosen: sum(COSTS[probe] for probe in chosen))


def whole(table: Table) -> dict[str, dict[str, str]]:
    """Return a table with an entry for each probe and each patient.

    Args:
        table: for each probe, the suspects that it distinguishes from the healthy program; those
            not named are "as healthy".
    """
    return {
        probe: {one: table.get(probe, {}).get(one, LIKE) for one in PATIENTS} for probe in COSTS
    }


def check_table(table: Table) -> Report:
    """Compare a learner's table with the measurements; store it once it is all right.

    Args:
        table: for each probe the suspects that it shows, `{"leak": {"mask added": "higher"}}`.

    Raises:
        ValueError: it names an unknown probe, suspect or outcome.
    """
    _check_names(table)
    truth, entries = outcomes(), whole(table)
    wrong = [_correction(*place) for place in _places(table) if not _agrees(place, entries, truth)]
    named = set(_places(table))
    missing = {
        probe: sum((probe, one) not in named and truth[probe][one] != LIKE for one in PATIENTS)
        for probe in COSTS
    }
    right = sum(
        _agrees(place, entries, truth) and truth[place[0]][place[1]] != LIKE for place in named
    )
    total = sum(word != LIKE for says in truth.values() for word in says.values())
    if not wrong and not any(missing.values()):
        return Report("symptoms", "passed", f"All {total} entries are right. {_keep(table)}")
    sentences = [f"{right} of {total} entries are right, and {len(wrong)} of yours are wrong."]
    open_entries = [f"{count} of `{probe}`" for probe, count in missing.items() if count]
    open_entries = [f"Not named yet: {', '.join(open_entries)}."] if open_entries else []
    return Report("symptoms", "failed", "\n".join([*sentences, *wrong[:SHOWN], *open_entries]))


def my_table() -> tuple[dict[str, dict[str, str]], bool]:
    """Return the learner's completed table and True; or, until it is right, ours and False."""
    folder = collection_folder()
    path = folder and folder / FILE
    try:
        entries = whole(json.loads(path.read_text("utf-8"))) if path else None
    except (OSError, ValueError, AttributeError):
        entries = None
    return (entries, True) if entries == outcomes() else (outcomes(), False)


def _check_names(table: Table) -> None:
    for probe, says in table.items():
        if probe not in COSTS:
            raise Misuse(f"There is no probe {probe!r:.60}. Take one of: {', '.join(COSTS)}.")
        for suspect, word in says.items():
            if suspect not in PATIENTS:
                raise Misuse(
                    f"{probe!r} names {suspect!r:.60}. The patients are: {', '.join(PATIENTS)}."
                )
            if word not in (LIKE, HIGHER, LOWER):
                raise Misuse(
                    f"{probe!r} says {word!r:.60} of {suspect!r}: write "
                    f"{LIKE!r}, {HIGHER!r} or {LOWER!r}."
                )


def _places(table: Table) -> list[tuple[str, str]]:
    return [(probe, one) for probe in table for one in table[probe]]


def _agrees(place: tuple[str, str], given: Table, truth: Table) -> bool:
    probe, one = place
    return given[probe][one] == truth[probe][one]


def _correction(probe: str, suspect: str) -> str:
    """Return the two numbers that contradict an entry."""
    measure = MEASURES[probe]
    value, healthy = (
        f"{_measured()[name][probe]:.{measure.digits}f}" for name in (suspect, HEALTHY)
    )
    return (
        f"`{probe}` of `{suspect}`: {value} ({measure.unit}), where the healthy program has "
        f"{healthy}. That is “{said(probe, suspect)}”."
    )


def _keep(table: Table) -> str:
    folder = collection_folder()
    if folder is None:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    entries = {probe: dict(says) for probe, says in table.items()}
    write_atomically(folder / FILE, json.dumps(entries, indent=1, ensure_ascii=False).encode())
    return f"Your table is kept in `{FOLDER}/{FILE}`."
