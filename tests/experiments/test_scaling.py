"""The curve through a few runs."""

import pytest

from transformer_lesson.experiments.scaling import fit_power_law

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
