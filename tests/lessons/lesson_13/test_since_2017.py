"""The models of 2017 and 2026 have one size; the rule that compares them errs as it says."""

import itertools

import pytest
import torch

from transformer_lesson.exercises.engine import checks
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.lessons.lesson_13 import since_2017, variants
from transformer_lesson.lessons.lesson_13.since_2017 import counts, ladder, verdict
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer


def test_every_rung_has_the_same_size_and_one_change_more():
    rungs = ladder()
    sizes = [count_parameters(DecoderOnlyTransformer(config)) for config in rungs.values()]
    assert max(sizes) < 1.004 * min(sizes)
    assert list(rungs) == ["2017", *(f"+ {name}" for name in since_2017.CHANGES)]
    last = rungs[since_2017.LAST]
    for choices in since_2017.CHANGES.values():
        for name, value in choices.items():
            assert getattr(last, name) == value
            assert getattr(rungs["2017"], name) != value


@pytest.mark.parametrize(("seeds", "alarms", "power"), [(3, 0.095, 0.31), (10, 0.015, 0.58)])
def test_the_rule_is_wrong_as_often_as_it_says(seeds, alarms, power):
    noise = torch.randn(100_000, seeds, generator=torch.Generator().manual_seed(1))
    for effect, share in ((0.0, alarms), (1.0, power), (-1.0, power)):
        assert counts(0.02 * (noise + effect)).double().mean() == pytest.approx(share, abs=0.006)


def test_a_verdict_says_in_which_direction():
    assert verdict([-0.2, -0.19, -0.19]) == "lower loss"
    assert verdict([0.2, 0.19, 0.19]) == "higher loss"
    assert verdict([-0.1, 0.01, -0.1]) == verdict([0.0, 0.0, 0.0]) == "inside the noise"


def by_t(limit):
    """Return the rule that looks how many standard errors the mean is away from 0."""
    return lambda d: d.mean(1).abs() > limit * d.std(1) / d.size(1) ** 0.5


def with_ten(limit):
    """Return a rule of three standard errors that has a limit of its own for ten seeds."""
    return lambda d: by_t(limit if d.size(1) == 10 else 3.0)(d)


@pytest.mark.parametrize("limit", [2.83, 3.0, 3.2])  # from 2 % of false alarms to half of what is
def test_a_rule_that_passes_need_not_be_ours_and_reverses_nothing_of_the_ladder(limit):
    of_any = with_ten(limit)
    report = checks.check_and_diagnose(find("counts"), of_any)
    assert report.status == "passed" and "Equal to" not in report.message
    names = list(ladder())
    for old, new in itertools.pairwise(names):
        if new != "+ SwiGLU":  # 3.02 standard errors: on the limit, as the lesson says
            found = torch.tensor([variants.differences(old, new)])
            assert of_any(found).item() == (verdict(found[0].tolist()) != "inside the noise")


def test_a_rule_with_too_many_false_alarms_in_ten_seeds_hears_so():
    report = checks.check_and_diagnose(find("counts"), by_t(1.9))
    assert report.status == "failed"
    report = checks.check_and_diagnose(find("counts"), with_ten(1.833))
    assert report.status == "failed" and "with 10 seeds each" in report.message
    assert "2 % are the most" in report.message
