"""The claims that the lesson shows: those that its script tests, with all their runs."""

import importlib

import pytest

from transformer_lesson.lessons.lesson_17.claims import stored_claim
from transformer_lesson.lessons.lesson_17.measure_claims import CLAIMS

module = importlib.import_module("transformer_lesson.capstone.claim")


@pytest.mark.parametrize(("claimed", "verdict"), [("fall", "not the reason"), ("rotary", "held")])
def test_a_stored_claim_is_the_scripts_and_lacks_no_run(claimed, verdict):
    one, asked = stored_claim(claimed), CLAIMS[claimed]
    assert (one.says, one.predicts) == (asked["says"], asked["predicts"])
    for name in module.SIDES:
        assert one.sides[name] == asked[name]
        assert [len(losses) for losses in one.tried[name]] == [module.TRIES] * len(one.rates)
        assert len(one.pairs[name]) == asked.get("seeds", 6) and one.best[name] in one.rates
    assert one.verdict == verdict and not one.on_edge and verdict in repr(one)


@pytest.mark.everything
def test_a_run_again_comes_out_as_stored():
    one, text = stored_claim("fall"), module._Text("manual")
    for name in module.SIDES:
        again = module.trained_loss(one.sides[name], text, one.best[name], 2, one.steps)
        assert again == pytest.approx(one.pairs[name][0], abs=0.03)
