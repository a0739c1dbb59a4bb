"""The clinic: programs that run and are wrong, suspects, and probes that cost minutes."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import CASES, FAULTS, HEALTHY, Case, wrong_lines
from transformer_lesson.lessons.lesson_14.symptoms import cheapest, limits, stored


def facts(case: Case) -> dict:
    """Return what a page knows about a case: its stored results, its suspects, the lines."""
    guilty, (wrong, right) = FAULTS[case.guilty], wrong_lines(case.guilty)
    return {
        "symptom": case.symptom,
        "suspects": [
            {"name": suspect, "says": FAULTS[suspect].suspicion} for suspect in case.suspects
        ],
        "guilty": case.guilty,
        "cheapest": cheapest(case),
        "sample": case.sample,
        "place": guilty.function,
        "reason": guilty.reason,
        "wrong": wrong,
        "right": right,
        **run_of(case.guilty),
    }


def run_of(name: str) -> dict:
    """Return what a page draws of a program's run."""
    return {key: stored()[name][key] for key in ("losses", "evaluation", "sentences", "probes")}


def limit_words(probe: str) -> str:
    """Return what is written behind a probe's healthy number; "" if only that one is healthy."""
    if probe == "another seed":
        return ", from {:.2f} to {:.2f}".format(*limits(probe))
    return f" ±{MEASURES[probe].near:g}" if MEASURES[probe].near else ""


class Clinic(PageExplorable):
    """Choose a case, press probes, and accuse a suspect; then see the line.

    What is shown was measured by `measure_sick_runs`: each program was trained once, healthy and
    with each fault.

    Args:
        case: its number, from 1.
        taken: the probes used, by case.
        verdicts: the suspect accused, by case.
    """

    case = traitlets.Int(1, min=1, max=len(CASES)).tag(sync=True)
    taken = traitlets.Dict().tag(sync=True)
    verdicts = traitlets.Dict().tag(sync=True)
    cases = traitlets.List().tag(sync=True, fact=True)
    healthy = traitlets.Dict().tag(sync=True, fact=True)
    probes = traitlets.List().tag(sync=True, fact=True)
    missing = traitlets.Unicode().tag(sync=True, fact=True)

    def __init__(self, **values):
        try:
            facts_of_all = {"cases": [facts(case) for case in CASES], "healthy": run_of(HEALTHY)}
        except ValueError as error:
            facts_of_all = {"missing": str(error)}
        probes = [
            {
                "name": name,
                "limit": limit_words(name),
                **{key: getattr(measure, key) for key in ("cost", "asks", "unit", "digits")},
            }
            for name, measure in MEASURES.items()
        ]
        super().__init__(probes=probes, **facts_of_all, **values)
