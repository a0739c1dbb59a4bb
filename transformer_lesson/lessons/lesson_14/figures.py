"""What each of the clinic's probes sees: a table of probes and patients, blind spots left empty."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from transformer_lesson.figures.plots import Figure, draw_matrix, figure
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import CASES, FAULTS, HEALTHY, PATIENTS
from transformer_lesson.lessons.lesson_14.symptoms import (
    HIGHER,
    IN_TABLE,
    LIKE,
    LOWER,
    limits,
    stored,
    unhealthy,
)

KINDS = ("model", "data", "optimization", "evaluation", "decoding")
SHADES = {LIKE: "#ffffff", LOWER: "#b5d6ea", HIGHER: "#f7cda8", HEALTHY: "#e6e6e6"}


def by_kind() -> list[str]:
    """Return the patients, those with a fault of the same kind side by side."""
    return sorted(PATIENTS, key=lambda patient: KINDS.index(FAULTS[patient].kind))


def seen() -> dict[str, list[str]]:
    """Return, for each probe, the patients whose number differs from the healthy one, in each seed.

    Probes that see the same kinds of patients are side by side, blind ones last.
    """
    rows = by_kind()
    sees = {
        probe: [patient for patient in rows if _seeds(probe, patient) == len(IN_TABLE)]
        for probe in MEASURES
    }

    def place(probe: str) -> float:
        places = [rows.index(patient) for patient in sees[probe]]
        return sum(places) / len(places) if places else math.inf

    return {probe: sees[probe] for probe in sorted(sees, key=place)}


def _seeds(probe: str, patient: str) -> int:
    """Return from how many seeds a probe sees a patient."""
    return len(unhealthy(probe, patient))


def sometimes() -> dict[tuple[str, str], int]:
    """Return the patients that a probe sees from some seeds only, and from how many."""
    pairs = {
        (probe, patient): _seeds(probe, patient) for probe in MEASURES for patient in by_kind()
    }
    return {pair: count for pair, count in pairs.items() if 0 < count < len(IN_TABLE)}


def healthy_limits(probe: str) -> str:
    """Return a probe's healthy number and how far off is healthy; of several runs, their limits."""
    measure = MEASURES[probe]
    if probe == "another seed":
        low, high = limits(probe)
        return f"{low:.{measure.digits}f} to\n{high:.{measure.digits}f}"
    number = f"{stored()[HEALTHY]['probes'][probe]:.{measure.digits}f}"
    return f"{number}\n±{measure.near:g}"


def blind_spots(title: str) -> Figure:
    """Return a figure of the table: a row per patient, below the healthy one, a column per probe.

    A number that differs from the healthy one by more than the probe's limit, from each seed, is
    shown as from the first, shaded by whether it is higher or lower. Where seeds disagree, it says
    from how many of them the number differs. The healthy row shows the limits.

    Args:
        title: the claim that the figure supports.
    """
    sees, rows, few = seen(), by_kind(), sometimes()
    details = [f"{probe}: {', '.join(patients) or 'none'}" for probe, patients in sees.items()]
    details += [
        f"{probe}, in {n} of 3 seeds only: {patient}" for (probe, patient), n in few.items()
    ]
    alt = f"Patients that each probe sees, from three seeds. {'; '.join(details)}."
    picture, axes = figure(title, alt, 9.5, 4.6)
    levels = list(SHADES)
    table = [[levels.index(HEALTHY)] * len(sees)]
    table += [
        [levels.index([*unhealthy(probe, patient), LIKE][0]) for probe in sees] for patient in rows
    ]
    number_of = {case.guilty: number for number, case in enumerate(CASES, 1)}
    labels = [HEALTHY, *(f"{patient} ({number_of[patient]})" for patient in rows)]
    shades = ListedColormap(list(SHADES.values()))
    draw_matrix(axes, torch.tensor(table), list(sees), labels, numbers=False, cmap=shades)
    _write_numbers(axes, sees, [HEALTHY, *rows])
    _name_kinds(axes, rows)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(sees)), list(sees), rotation=40, ha="left", fontsize=8,
                    rotation_mode="anchor")  # fmt: skip
    axes.vlines([column + 0.5 for column in range(len(sees) - 1)], -0.5, len(rows) + 0.5,
                color="#dddddd", lw=0.6)  # fmt: skip
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlabel(
        "a number: outside the healthy limits from all three seeds (the first is shown); "
        "2 of 3: from two of them\norange is higher, blue is lower",
        fontsize=9,
    )
    picture.subplots_adjust(left=0.22, right=0.88, top=0.74, bottom=0.08)
    return picture


def _write_numbers(axes: Axes, sees: dict[str, list[str]], rows: list[str]) -> None:
    """Write each probe's healthy limits, the numbers of patients that it sees, or how often."""
    few = sometimes()
    for row, name in enumerate(rows):
        for column, probe in enumerate(sees):
            size = 6 if name == HEALTHY else 7
            if name == HEALTHY:
                words = healthy_limits(probe)
            elif name in sees[probe]:
                words = f"{stored()[name]['probes'][probe]:.{MEASURES[probe].digits}f}"
            elif (probe, name) in few:
                words = f"{few[probe, name]} of 3"
            else:
                continue
            axes.text(column, row, words, ha="center", va="center", fontsize=size, linespacing=1)


def _name_kinds(axes: Axes, rows: list[str]) -> None:
    """Write each kind of fault at the right, and draw a line between two of them."""
    for kind in KINDS:
        places = [row for row, patient in enumerate(rows, start=1) if FAULTS[patient].kind == kind]
        middle = (places[0] + places[-1]) / 2
        axes.text(1.01, middle, kind, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.axhline(places[0] - 0.5, color="#777777", lw=0.8)
