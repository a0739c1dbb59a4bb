"""The curve through a few runs."""

import math

import pytest

from transformer_lesson.training.scaling import REFITTED, ScalingLaw, fit_power_law


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
