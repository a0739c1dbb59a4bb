"""Stored runs on leashes: the truth stays hidden until the learner has said where to stop."""

import re

from tests.explorables.shown import lines
from transformer_lesson.explorables import Leash


def test_without_a_leash_the_reward_ends_highest_and_the_truth_lowest():
    facts = Leash()
    for run in facts.runs:
        points = run["points"]
        free = points[facts.leashes.index(0)]
        assert free[-1]["reward"] == max(one["reward"] for line in points for one in line[-1:])
        assert free[-1]["truth"] < 0.05 < 0.75 < max(one["truth"] for one in free)
        best = max(range(len(points)), key=lambda i: max(one["truth"] for one in points[i]))
        assert facts.leashes[best] in (0.1, 0.3)  # neither the longest nor the shortest


def test_nothing_of_the_truth_is_told_before_the_learner_stops(show):
    explorable = Leash(stop=5, leash=2)
    page, points = show(explorable), explorable.runs[0]["points"]
    shown = page.all()
    told = " ".join([*shown["told"], *shown["written"], shown["title"], shown["said"]])
    assert "right" not in re.sub("share of right answers|How many are right", "", told)
    assert not any("truth" in one for one in shown["told"]) and "✓" not in told
    rewards = [(4 * k, f"{one['reward']:.2f}") for k, one in enumerate(points[2][:6])]
    assert shown["told"][-6:] == lines("reward at step {}: {} points", rewards)
    assert " ".join(explorable.runs[0]["sentences"][0][0].split()) in " ".join(shown["written"])
    page.click("Stop here")
    assert page.get("committed") == {"0": [2, 5]} and page.named("Stop here").is_disabled()
    truths = [(4 * k, f"{one['truth']:.3f}") for k, one in enumerate(points[2])]
    assert page.told()[-13:] == lines("truth at step {}: {} right", truths)
    page.set(run=1)
    assert "stays hidden until you stop" in page.said and page.named("Stop here").is_enabled()


def test_the_place_is_compared_with_the_earliest_best_one(show):
    explorable = Leash()
    page = show(explorable)
    for run, (leash, stop) in enumerate([(0, 12), (1, 6), (2, 10)]):
        page.set(run=run, committed={str(run): [leash, stop]})
        points = explorable.runs[run]["points"]
        mine, best = points[leash][stop]["truth"], max(p["truth"] for line in points for p in line)
        verdict = "as good as the best, " if run else "the best was "
        assert f"{mine:.3f} right, {verdict}{best:.3f} (step " in page.said
        assert (mine >= best - explorable.noise) == (run > 0)
