"""The curve through a few runs."""

import math

import pytest

from transformer_lesson.training.scaling import (
    REFITTED,
    ScalingLaw,
    fit_power_law,
    fit_scaling_law,
)


@pytest.mark.parametrize("floors", [[], [2.0], [0.0, 1.5]])
def test_a_floor_above_a_loss_is_refused(floors):
    with pytest.raises(ValueError, match="below the smallest loss, 1.5"):
        fit_power_law([10, 20, 30], [3.0, 1.5, 2.0], floors)


LAW = ScalingLaw(1.1, 30.0, 90.0, 0.4, 0.3)


def test_the_best_size_for_some_operations_is_the_lowest_of_all():
    for operations in (1e12, 1e18):
        best = LAW.best_size(operations)
        losses = [LAW.loss(n, operations / 6 / n) for n in (0.97 * best, best, 1.03 * best)]
        assert losses[1] == min(losses) < losses[0] * 0.999999


def test_a_model_that_writes_nothing_is_as_large_as_the_best_and_one_that_writes_much_smaller():
    size = REFITTED.best_size(1e21)
    loss = REFITTED.loss(size, 1e21 / 6 / size)
    assert REFITTED.tokens_for(loss, size) == pytest.approx(1e21 / 6 / size)
    assert REFITTED.tokens_for(loss, size / 100) == math.inf
    idle, busy = (REFITTED.cheapest(loss, written) for written in (0, 1e14))
    assert idle[0] == pytest.approx(size, rel=0.02)
    assert busy[0] < size / 2 and busy[1] > 3 * idle[1]
    assert REFITTED.loss(*busy) == pytest.approx(loss)


@pytest.mark.parametrize(
    ("sizes", "tokens", "word"),
    [([1e4, 2e4, 1e4, 2e4], [1e5, 2e5, 3e5, 4e5], "sizes"), ([1e4, 2e4, 3e4], [1e5] * 3, "tokens")],
)
def test_two_points_choose_no_exponent(sizes, tokens, word):
    with pytest.raises(ValueError, match=f"three different .*{word}"):
        fit_scaling_law(sizes, tokens, [2.0] * len(sizes), [0.3, 0.5])


def test_a_law_finds_itself_in_runs_without_noise():
    truth = ScalingLaw(1.0, 20.0, 50.0, 0.4, 0.3)
    runs = [(N, D) for N in (1e4, 3e4, 1e5) for D in (1e5, 3e5, 1e6)]
    found = fit_scaling_law(
        *zip(*runs, strict=True), [truth.loss(*run) for run in runs], [0.2, 0.3, 0.4]
    )
    assert found == pytest.approx((1.0, 20.0, 50.0, 0.4, 0.3))
