"""The clinic of rewards: runs of GRPO that went wrong, suspects, and probes that cost minutes."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.lessons.lesson_16.sick_rewards import (
    CASES,
    FAULTS,
    HEALTHY,
    PROBES,
    Case,
    stored,
)


def facts(case: Case) -> dict:
    """Return what a page knows about a case: its stored results, its suspects, the line."""
    guilty, run = FAULTS[case.guilty], stored()[case.guilty]
    return {
        "symptom": case.symptom,
        "suspects": [{"name": name, "says": FAULTS[name].suspicion} for name in case.suspects],
        "guilty": case.guilty,
        "cheapest": case.tells,
        "place": guilty.place,
        "reason": guilty.reason,
        "wrong": [guilty.wrong],
        "right": [guilty.right],
        "texts": {"ten outputs": run["outputs"]},
        **run,
    }


class RewardClinic(PageExplorable):
    """Choose a case, press probes, and accuse a suspect; then see the line.

    What is shown was measured by `measure_sick_rewards`: GRPO was run once, healthy and with each
    fault.

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
            contents = {"cases": [facts(case) for case in CASES], "healthy": stored()[HEALTHY]}
        except ValueError as error:
            contents = {"missing": str(error)}
        probes = [{"name": name, **probe._asdict()} for name, probe in PROBES.items()]
        super().__init__(probes=probes, **contents, **values)
