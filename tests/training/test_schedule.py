"""Each schedule has the rate that its formula says, at its corners and between them."""

import math

import pytest

from transformer_lesson.training import TrainConfig, learning_rate, warmup_rate


def rates(schedule: str, **changes) -> list[float]:
    """The rate of each step; index 0 is unused, so that the index is the step."""
    config = TrainConfig(**{"steps": 100, "schedule": schedule, "warmup_steps": 10} | changes)
    return [math.nan] + [learning_rate(step, config, 64) for step in range(1, config.steps + 1)]


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (128, 400), (7, 1)])
def test_warmup_rate_is_equation_3(d_model, warmup):
    for step in (1, 2, warmup // 2 + 1, warmup, warmup + 1, 10 * warmup):
        wanted = min(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d_model)
        assert warmup_rate(step, d_model, warmup) == pytest.approx(wanted)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_warm_up_is_a_straight_line_to_the_peak_and_without_it_a_run_begins_there(schedule):
    curve = rates(schedule, learning_rate=3e-3)
    assert curve[1:11] == pytest.approx([3e-4 * step for step in range(1, 11)])
    assert max(curve[1:]) == curve[10] == 3e-3
    assert rates(schedule, warmup_steps=200)[100] == pytest.approx(0.5e-3)  # all is warm-up
    assert schedule != "constant" or set(curve[10:]) == {3e-3}
    assert rates(schedule, warmup_steps=0)[1] == pytest.approx(1e-3, rel=0.02)
    assert rates(schedule, warmup_steps=0, steps=1)[1] > 0


def test_each_falls_as_its_formula_says():
    curve = rates("linear", learning_rate=1.0)  # to zero after the last step
    falls = [a - b for a, b in zip(curve[10:], [*curve[11:], 0.0], strict=True)]
    assert falls == pytest.approx([1 / 91] * 91)
    assert curve[100] > 0
    curve = rates("cosine", learning_rate=1.0, steps=109, warmup_steps=10)  # to a tenth
    assert curve[60] == pytest.approx(0.55)  # half way
    assert curve[35] == pytest.approx(0.1 + 0.45 * (1 + math.sqrt(0.5)))  # a quarter of the way
    assert 0.1 < curve[109] < 0.1003
    for factor, setting in ((1.0, {}), (0.5, {"learning_rate": 0.5})):
        wanted = [factor * warmup_rate(step, 64, 10) for step in range(1, 101)]
        assert rates("noam", **setting)[1:] == pytest.approx(wanted)


@pytest.mark.parametrize("schedule", ["linear", "noam"])
@pytest.mark.parametrize("step", [0, -1, 101])
def test_a_step_outside_the_run_is_refused(schedule, step):
    config = TrainConfig(steps=100, schedule=schedule)
    with pytest.raises(ValueError, match=f"step is {step}, but this run's steps go from 1 to 100"):
        learning_rate(step, config, 64)
    for sizes in ((0, 512, 400), (-1, 512, 400), (1, 0, 400), (1, 512, 0)):
        with pytest.raises(ValueError, match="but it must be at least 1"):
            warmup_rate(*sizes)
