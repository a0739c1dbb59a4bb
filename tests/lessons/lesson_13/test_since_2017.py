"""The models of 2017 and 2026 have one size; the rule that compares them errs as it says."""

import pytest
import torch

from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.since_2017 import counts, ladder, verdict
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer


def test_every_rung_has_the_same_size_and_one_change_more():
    rungs = ladder()
    sizes = [count_parameters(DecoderOnlyTransformer(config)) for config in rungs.values()]
    assert max(sizes) < 1.004 * min(sizes)
    assert list(rungs) == ["2017", *(f"+ {name}" for name in since_2017.CHANGES)]
    assert list(rungs)[-1] == since_2017.LAST
    last = rungs[since_2017.LAST]
    for choices in since_2017.CHANGES.values():
        for name, value in choices.items():
            assert getattr(last, name) == value
            assert getattr(rungs["2017"], name) != value


@pytest.mark.parametrize("change", ["SwiGLU", "pre-norm"])
def test_no_other_width_comes_nearer_to_the_size(change):
    config = since_2017.replace(since_2017.paper_config(), **since_2017.CHANGES[change])
    made = since_2017.same_size(config, 90_000)

    def away(d_ff):
        return abs(
            count_parameters(DecoderOnlyTransformer(since_2017.replace(made, d_ff=d_ff))) - 90_000
        )

    assert away(made.d_ff) <= min(away(made.d_ff - 1), away(made.d_ff + 1))


@pytest.mark.parametrize(("seeds", "alarms", "power"), [(3, 0.095, 0.31), (10, 0.015, 0.58)])
def test_the_rule_is_wrong_as_often_as_it_says(seeds, alarms, power):
    noise = torch.randn(100_000, seeds, generator=torch.Generator().manual_seed(1))
    for effect, share in ((0.0, alarms), (1.0, power), (-1.0, power)):
        assert counts(0.02 * (noise + effect)).double().mean() == pytest.approx(share, abs=0.006)


def test_a_verdict_says_in_which_direction():
    assert verdict([-0.2, -0.19, -0.19]) == "lower loss"
    assert verdict([0.2, 0.19, 0.19]) == "higher loss"
    assert verdict([-0.1, 0.01, -0.1]) == verdict([0.0, 0.0, 0.0]) == "inside the noise"
