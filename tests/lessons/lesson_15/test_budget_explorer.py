"""A budget on the map of a scaling law: losses, best sizes and lines are those of `ScalingLaw`."""

import re

import numpy as np
import pytest

from tests.explorables.shown import assert_agree
from transformer_lesson.explorables import BudgetExplorer
from transformer_lesson.lessons.lesson_15.scaling_law import stored
from transformer_lesson.training.scaling import PUBLISHED, REFITTED, ScalingLaw

OWN = ScalingLaw(0.5, 5, 40, 0.25, 0.3)
LAWS = (OWN, PUBLISHED, REFITTED)


def of_step(law: int, spend: int, size: int) -> tuple[float, float]:
    """Operations and weights of two sliders."""
    if law == 0:
        return 10 ** (9.5 + spend / 20), 10 ** (3 + size / 20)
    return 10 ** (20 + 3 * spend / 20), 10 ** (8 + size / 12)


@pytest.mark.parametrize("law", [0, 1, 2])
def test_loss_and_best_size_are_those_of_the_law(show, law):
    page, one = show(BudgetExplorer(OWN, law=law)), LAWS[law]
    states = [{"spend": spend, "size": size} for spend in (0, 25, 40) for size in (0, 20, 42, 60)]
    for state, shown in zip(states, page.states(states), strict=True):
        operations, _ = of_step(law, **state)
        sizes = [of_step(law, state["spend"], step)[1] for step in range(61)]
        losses = [one.loss(N, operations / 6 / N) for N in sizes]
        N, best = sizes[state["size"]], one.best_size(operations)
        loss, lowest = losses[state["size"]], one.loss(best, operations / 6 / best)
        above = f"{loss - lowest:.3f} above the lowest"
        wanted = "the lowest here" if loss == min(losses) else above
        assert_agree([shown["title"].split(": ")[1]], [f"{loss:.3f} nats, {wanted}"])
        small, little = one.A / N**one.alpha, one.B * (6 * N / operations) ** one.beta
        told = re.findall(r"\d+\.\d{3}", shown["said"])
        assert_agree(told, [f"{small:.3f}", f"{little:.3f}"])


def test_each_run_tells_what_it_reached(show):
    page, runs = show(BudgetExplorer(OWN, law=0)), stored()
    told = [one for one in page.told() if "reached" in one]
    cells = sorted({(run.size, run.tokens) for run in [*runs.grid, *runs.held_out]})
    means = {
        cell: np.mean([r.loss for r in [*runs.grid, *runs.held_out] if r[1:3] == cell])
        for cell in cells
    }
    known = {run[1:3] for run in runs.grid}
    wanted = [
        f"{N:,} weights, {D:,} characters: reached {means[N, D]:.2f}, the law says "
        f"{OWN.loss(N, D):.2f} ({'fitted' if (N, D) in known else 'not fitted'})"
        for N, D in cells
    ]
    assert_agree(sorted(told), sorted(wanted))


def test_a_click_on_a_model_takes_its_size_and_its_budget(show):
    page = show(BudgetExplorer(OWN))
    page.named(re.compile("^Chinchilla: ")).click(force=True)
    operations, N = of_step(2, *page.get("spend", "size"))
    assert 0.8 < N / 70e9 < 1.2 and 0.8 < operations / (6 * 70e9 * 1.4e12) < 1.2
    says = f"the law says {REFITTED.loss(70e9, 1.4e12):.2f}"
    (told,) = (one for one in page.told() if one.startswith("Chinchilla"))
    assert_agree([told], [f"Chinchilla: 70 billion weights, 1.4 trillion tokens: {says}"])
