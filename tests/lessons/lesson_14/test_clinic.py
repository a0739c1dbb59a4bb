"""The clinic in the page: the stored numbers, nothing before its time, and what a verdict says."""

import re

from tests.explorables.shown import assert_agree
from transformer_lesson.explorables import Clinic
from transformer_lesson.lessons.lesson_14 import symptoms
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import CASES, FAULTS, HEALTHY, wrong_lines
from transformer_lesson.lessons.lesson_14.symptoms import COSTS, cheapest, stored

ALL = list(MEASURES)


def numbers(case, probe: str) -> list[str]:
    digits, both = MEASURES[probe].digits, (case.guilty, HEALTHY)
    return [f"{stored()[one]['probes'][probe] + 0.0:.{digits}f}" for one in both]


def pressed(case, probe: str) -> str:
    measure, (sick, right) = MEASURES[probe], numbers(case, probe)
    limit = f" ±{measure.near:g}" if measure.near else ""
    if probe == "another seed":
        runs = stored()[HEALTHY]["seeds"]
        limit = f", from {min(runs) - 0.05:.2f} to {max(runs) + 0.05:.2f}"
    return f"{probe}: {measure.asks} sick {sick}, healthy {right}{limit} ({measure.unit})"


def unpressed(probe: str) -> str:
    minutes = "1 minute" if COSTS[probe] == 1 else f"{COSTS[probe]} minutes"
    return f"{probe}, {minutes}: {MEASURES[probe].asks}"


def steps(case) -> list[str]:
    both = zip(stored()[case.guilty]["losses"], stored()[HEALTHY]["losses"], strict=True)
    return [f"step {2 * i}: sick {a:.2f}, healthy {b:.2f}" for i, (a, b) in enumerate(both)]


def test_every_case_has_the_stored_numbers_and_hides_its_line_until_the_verdict(show):
    page = show(Clinic())
    for number, case in enumerate(CASES, 1):
        (wrong, right), key = wrong_lines(case.guilty), str(number)
        page.set(case=number)
        before = page.all()
        says = [FAULTS[one].suspicion for one in case.suspects]
        assert_agree(before["told"], [*says, *steps(case), *map(unpressed, ALL)])
        assert before["title"] == f"Case {number}: {case.symptom}"
        shown = " ".join(before["written"])
        assert "✗" not in shown and "✓" not in shown
        assert not any(line.strip() in shown for line in wrong + right)
        for who, run in (("sick", case.guilty), ("healthy", HEALTHY)):
            sentence = stored()[run]["sentences"][case.sample].removeprefix("<bos> ")
            assert f"{who}: {sentence}" in shown
        page.set(taken={key: ALL[:12]}, verdicts={key: case.guilty})
        after = page.all()
        guilty = FAULTS[case.guilty].suspicion
        marked = ["✓ " * (one == guilty) + one for one in says]
        told = [pressed(case, probe) for probe in ALL]
        assert_agree(after["told"], [*marked, *steps(case), "open the case again", *told])
        code = re.sub("[ ✗✓]", "", "".join(after["written"]))
        assert all(line.replace(" ", "") in code for line in wrong + right)
        assert FAULTS[case.guilty].function in code
        assert " and ".join(cheapest(case)) in after["said"]
        page.set(taken={}, verdicts={})


def test_a_probe_is_pressed_once_a_verdict_is_final_and_a_case_can_be_opened_again(show):
    page, (first, *_) = show(Clinic()), CASES
    page.click(unpressed("order"), pressed(first, "order"), unpressed("layer by layer"))
    assert page.get("taken") == {"1": ["order", "layer by layer"]}
    assert "2 probes, 6 minutes. 0 of 13 cases solved." in page.said
    wrong = next(one for one in first.suspects if one != first.guilty)
    page.click(FAULTS[wrong].suspicion)
    assert page.title.startswith("Case 1, wrong after 6 minutes: The optimizer was not given")
    assert f"✗ {FAULTS[wrong].suspicion}" in page.told()
    page.click(f"✓ {FAULTS[first.guilty].suspicion}")  # too late
    assert page.get("verdicts") == {"1": wrong} and "0 of 13 cases solved" in page.said
    page.click("open the case again")
    assert page.get("taken", "verdicts") == [{}, {}]
    page.click(unpressed("rates"), FAULTS[first.guilty].suspicion)
    assert page.said.endswith("1 of 13 cases solved.")


def test_missing_numbers_say_how_they_are_made(show, monkeypatch, tmp_path):
    stored.cache_clear()
    monkeypatch.setattr(symptoms, "STORED", tmp_path / "clinic.json")
    try:
        assert "lesson_14.measure_sick_runs` makes it again" in show(Clinic()).said
    finally:
        stored.cache_clear()
