"""The curve through a few runs."""

import math

import pytest

from transformer_lesson.training import scaling
from transformer_lesson.training.scaling import REFITTED, ScalingLaw, fit_power_law

SIZES = [1_000, 20_000, 3_000, 500_000]


@pytest.mark.parametrize("floor", [0.0, 0.7, 1.6])
def test_what_follows_the_law_is_found_again(floor):
    losses = [floor + 12.5 * size**-0.23 for size in SIZES]
    floors = [one for one in (0.3, 1.6, 0.0, 0.7) if one < min(losses)]
    fitted = fit_power_law(SIZES, losses, floors)
    assert fitted == pytest.approx((floor, 12.5, 0.23))


def test_curves_are_judged_by_the_losses_and_not_in_logarithms():
    sizes, losses, floors = [59547, 86467, 10219], [1.27, 1.24, 1.7], [0.71, 0.19, 0.3]
    errors = {}
    for floor in floors:
        _, a, b = fit_power_law(sizes, losses, [floor])
        errors[floor] = sum(
            (floor + a * n**-b - y) ** 2 for n, y in zip(sizes, losses, strict=True)
        )
    assert fit_power_law(sizes, losses, floors)[0] == min(errors, key=errors.get) == 0.71


@pytest.mark.parametrize("floors", [[], [2.0], [0.0, 1.5]])
def test_a_floor_above_a_loss_is_refused(floors):
    with pytest.raises(ValueError, match="below the smallest loss, 1.5"):
        fit_power_law([10, 20, 30], [3.0, 1.5, 2.0], floors)


LAW = ScalingLaw(1.1, 30.0, 90.0, 0.4, 0.3)
GRID = [(n, d) for n in (7_000, 19_000, 130_000) for d in (30_000, 110_000, 500_000)]


def test_a_law_of_size_and_text_is_found_again():
    sizes, tokens = zip(*GRID, strict=True)
    losses = [LAW.loss(*run) for run in GRID]
    fitted = scaling.fit_scaling_law(sizes, tokens, losses, [0.2, 0.3, 0.4, 0.5])
    assert fitted == pytest.approx(LAW, rel=1e-5)


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
