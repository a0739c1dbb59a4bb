"""The curve through a few runs."""

import math

import pytest

from transformer_lesson.training.scaling import REFITTED, ScalingLaw, fit_scaling_law


def test_a_model_that_writes_nothing_is_as_large_as_the_best_and_one_that_writes_much_smaller():
    size = REFITTED.best_size(1e21)
    loss = REFITTED.loss(size, 1e21 / 6 / size)
    assert REFITTED.tokens_for(loss, size) == pytest.approx(1e21 / 6 / size)
    assert REFITTED.tokens_for(loss, size / 100) == math.inf
    idle, busy = (REFITTED.cheapest(loss, written) for written in (0, 1e14))
    assert idle[0] == pytest.approx(size, rel=0.02)
    assert busy[0] < size / 2 and busy[1] > 3 * idle[1]
    assert REFITTED.loss(*busy) == pytest.approx(loss)


def test_two_points_choose_no_exponent():
    with pytest.raises(ValueError, match="three different .*tokens"):
        fit_scaling_law([1e4, 2e4, 3e4], [1e5] * 3, [2.0] * 3, [0.3, 0.5])


def test_a_law_finds_itself_in_runs_without_noise():
    truth = ScalingLaw(1.0, 20.0, 50.0, 0.4, 0.3)
    runs = [(N, D) for N in (1e4, 3e4, 1e5) for D in (1e5, 3e5, 1e6)]
    found = fit_scaling_law(
        *zip(*runs, strict=True), [truth.loss(*run) for run in runs], [0.2, 0.3, 0.4]
    )
    assert found == pytest.approx((1.0, 20.0, 50.0, 0.4, 0.3))
