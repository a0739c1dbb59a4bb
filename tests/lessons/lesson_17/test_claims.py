"""The claims that the lesson shows: those that its script tests, with all their runs."""

import importlib
import re

import pytest
import torch

from transformer_lesson.lessons.lesson_17.claims import stored_claim
from transformer_lesson.lessons.lesson_17.controls import judged, sinusoids_in_each_block
from transformer_lesson.lessons.lesson_17.measure_claims import CLAIMS
from transformer_lesson.model.positions import sinusoidal_encoding

module = importlib.import_module("transformer_lesson.capstone.claim")


def named(side):
    return {name: getattr(value, "__name__", value) for name, value in side.items()}


@pytest.mark.parametrize(
    ("claimed", "verdict"), [("fall", "the control does it, too"), ("rotary", "held")]
)
def test_a_stored_claim_is_the_scripts_and_lacks_no_run(claimed, verdict):
    one, asked = stored_claim(claimed), CLAIMS[claimed]
    assert (one.says, one.predicts) == (asked["says"], asked["predicts"])
    for name in module.SIDES:
        assert one.sides[name] == named(asked[name])
        assert [len(losses) for losses in one.tried[name]] == [module.TRIES] * len(one.rates)
        assert len(one.pairs[name]) == asked.get("seeds", 6) and one.best[name] in one.rates
    assert one.verdict == verdict and not one.on_edge and verdict in repr(one)


@pytest.mark.everything
def test_a_run_again_comes_out_as_stored():
    one, text = stored_claim("fall"), module.Text("manual")
    for name in module.SIDES:
        again = module.trained_loss(one.sides[name], text, one.best[name], 2, one.steps)
        assert again == pytest.approx(one.pairs[name][0], abs=0.03)


def test_positions_in_each_block_reach_queries_and_keys_and_leave_the_values():
    text = module.Text("manual")
    side = {"positions": "sinusoidal", "edit": sinusoids_in_each_block}
    model = module.build(side, text, 0).eval()
    seen = []
    for block in model.decoder:
        block.self_attention.register_forward_pre_hook(lambda one, given: seen.append(given[:3]))
    model(text.validation[0].inputs[0][:1])
    code = sinusoidal_encoding(module.LENGTH, 64)
    assert len(seen) == 2
    for query, key, value in seen:
        assert torch.equal(query, key) and torch.allclose(query - value, code, atol=1e-5)


@pytest.mark.parametrize(
    ("believed", "control", "said"),
    [
        ("fall", {}, "the baseline again"),
        ("fall", {"schedule": "linear"}, "it falls to zero, too"),
        ("bell", {"activation": "swish", "n_heads": 8}, "two things at once"),
        ("bell", {"activations": "swish"}, "'activations' is no part of a side: .*"),
        ("deep", {"d_model": 64, "d_ff": 445}, "a control"),
        ("deep", {"d_ff": 384}, "139,520 parameters, and the change has 156,480"),
        ("deep", [450], "not a dict of what differs"),
    ],
)
def test_a_control_is_judged(believed, control, said):
    assert re.fullmatch(said, judged(believed, control))
