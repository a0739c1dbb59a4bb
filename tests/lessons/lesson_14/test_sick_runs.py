"""The clinic: faults that are what they say, and stored numbers that come again."""

from collections import Counter
from itertools import combinations

import pytest

from transformer_lesson.lessons.lesson_14.probes import MEASURES, idle_heads, measured
from transformer_lesson.lessons.lesson_14.sick_runs import (
    CASES,
    FAULTS,
    HEALTHY,
    PATIENTS,
    SUSPECTS,
    UNLUCKY,
    UNLUCKY_SEED,
    source,
    trained,
    wrong_lines,
)
from transformer_lesson.lessons.lesson_14.symptoms import (
    COSTS,
    HIGHER,
    IN_TABLE,
    LIKE,
    LOWER,
    cheapest,
    limits,
    said,
    stored,
    tells_apart,
)

FEW = (HEALTHY, "mask added", "<bos> twice")
EVERYTHING = pytest.mark.everything
RUN = [*FEW, *(pytest.param(one, marks=EVERYTHING) for one in FAULTS if one not in FEW)]
SENSITIVE = ("norm over the batch", "peak ten times too high")
"""Faults that make a processor's last digits larger from step to step."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_program_that_is_run_again_gives_what_is_stored(name, unchecked):
    run, kept = trained(name), stored()[name]
    near, at_end = (0.1, 0.5) if name in SENSITIVE else (0.02, 0.2)
    assert run.losses[:20:2] == pytest.approx(kept["losses"][:10], abs=near)
    assert sum(run.losses[-10:]) / 10 == pytest.approx(sum(kept["losses"][-5:]) / 5, abs=at_end)
    assert run.evaluation == pytest.approx(kept["evaluation"], abs=at_end)
    for probe, number in measured(name).items():
        word = said(probe, name)
        low, high = limits(probe)
        now = LIKE if low <= number <= high else HIGHER if number > high else LOWER
        assert now == word, (probe, number)


@pytest.mark.slow
def test_a_patient_from_the_tables_last_seed_is_what_is_stored(unchecked):
    name, seed = "mask added", IN_TABLE[-1]
    for probe, number in measured(name, seed).items():
        low, high = limits(probe, seed)
        now = LIKE if low <= number <= high else HIGHER if number > high else LOWER
        assert now == said(probe, name, seed), (probe, number)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, *(pytest.param(n, marks=EVERYTHING) for n in (2, 7, 10))])
def test_another_seed_ends_where_it_is_stored(seed, unchecked):
    run, kept = trained(HEALTHY, seed), stored()[HEALTHY]
    assert run.evaluation == pytest.approx(kept["seeds"][seed], abs=0.05)
    assert idle_heads(run) == kept["idle heads"][seed]


def test_no_probe_finds_anything_in_the_healthy_case():
    """Its curve is not the healthy one's, and neither is its loss at the end: that is its seed."""
    (case,) = (case for case in CASES if case.guilty == UNLUCKY)
    assert CASES.index(case) < 5  # among those that a learner meets in 90 minutes
    assert {said(probe, UNLUCKY) for probe in MEASURES} == {LIKE}
    assert stored()[UNLUCKY]["evaluation"] == stored()[HEALTHY]["seeds"][UNLUCKY_SEED]
    assert stored()[UNLUCKY]["evaluation"] > stored()[HEALTHY]["evaluation"] + 0.1
    assert not stored()[HEALTHY]["idle heads"][UNLUCKY_SEED]


def test_everything_is_stored_and_no_outcome_hangs_on_a_last_digit():
    assert set(stored()) == {HEALTHY, *FAULTS}
    for name in (HEALTHY, *PATIENTS):
        assert [set(one) for one in stored()[name]["more seeds"]] == 2 * [set(MEASURES)]
    for name in SUSPECTS:
        assert set(stored()[name]["probes"]) == set(MEASURES)
        for probe, measure in MEASURES.items():
            value, near = stored()[name]["probes"][probe], measure.near or 0.5
            low, high = limits(probe)
            edges = (low, high) if measure.near else (low - near, high + near)
            assert min(abs(value - edge) for edge in edges) > near / 4, (name, probe)


def test_no_healthy_run_from_another_seed_is_called_sick():
    """Nor is the copied name, which ends where healthy programs do; a program far off is."""
    low, high = limits("another seed")
    assert all(low <= one <= high for one in stored()[HEALTHY]["seeds"])
    assert said("another seed", "keys as values") == said("another seed", "temperature left in")
    assert said("another seed", "keys as values") == LIKE
    assert (said("another seed", "mask added"), said("another seed", "<eos> cut off")) == (
        LOWER,
        HIGHER,
    )


def test_a_fault_stands_in_its_function_and_nowhere_else():
    for name, fault in FAULTS.items():
        wrong, right = wrong_lines(name)
        assert wrong and right, name
        place = f"{fault.function} = " if fault.function.isupper() else f"def {fault.function}("
        part = next(one for one in source(name).split("\n\n\n") if place in one)
        assert wrong[-1] in part or fault.turn, name
    with pytest.raises(ValueError, match="no fault 'flu'; it has keys as values"):
        source("flu")


def test_cases_of_every_kind_can_be_told_from_their_suspects():
    kinds = Counter(FAULTS[one].kind for one in PATIENTS)
    assert len(set(PATIENTS)) == 12 and len({case.symptom for case in CASES}) == 13
    assert len(kinds) == 5 and min(kinds.values()) >= 2
    for case in CASES:
        others = {*case.suspects} - {case.guilty}
        assert case.guilty in case.suspects and 4 <= len(case.suspects) <= 5

        def tells(probes, others=others, guilty=case.guilty):
            return all(any(tells_apart(probe, one, guilty) for probe in probes) for one in others)

        minutes = sum(COSTS[probe] for probe in cheapest(case))
        sets = [chosen for n in (1, 2, 3) for chosen in combinations(MEASURES, n) if tells(chosen)]
        assert tells(cheapest(case))
        assert minutes == min(sum(COSTS[probe] for probe in chosen) for chosen in sets)
