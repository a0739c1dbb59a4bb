"""A TrainConfig that breaks a rule is refused with field, value and rule."""

import dataclasses
import json

import numpy as np
import pytest

from transformer_lesson.training import TrainConfig, learning_rate

pytestmark = pytest.mark.usefixtures("unchecked")

NAN, INFINITY = float("nan"), float("inf")
BAD = {
    "steps": (0, -1, 1.5, "9", None, True),
    "learning_rate": (0, -1e-3, NAN, INFINITY, "0.1", True),
    "schedule": ("Noam", "", None),
    "warmup_steps": (-1, 2.0, True),
    "optimizer": ("sgd", None),
    "betas": ((0.9,), [0.9, 1.5], [0.9, 0.98, 0.99], (0.9, 1.0), (-0.1, 0.9), 0.9, ("a", 0.9)),
    "epsilon": (0, -1e-9, NAN, None),
    "weight_decay": (-0.1, NAN, INFINITY, None, "0.1"),
    "clip": (0, -1.0, NAN, "1"),
    "label_smoothing": (-0.1, 1, NAN, None),
    "precision": ("float16", "bf16", None),
    "seed": (-1, 0.5, None, True),
    "gradient_accumulation_steps": (0, -1, 2.0, None, True),
    "activation_checkpointing": (1, 0, None, "yes"),
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_bad_value_is_refused(name, value):
    with pytest.raises(ValueError) as caught:
        TrainConfig(**{"steps": 10} | {name: value})
    assert str(caught.value).startswith(f"{name} is {value!r}, but it must be ")


@pytest.mark.parametrize(("steps", "warmup"), [(1, 1), (2, 1), (30, 15), (100, 50), (10**4, 50)])
@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_the_default_warm_up_leaves_a_run_of_any_length_its_peak(schedule, steps, warmup):
    config = TrainConfig(steps=steps, schedule=schedule)
    assert config.steps_of_warmup == warmup
    assert learning_rate(warmup, config, 64) == config.peak_learning_rate
    assert TrainConfig(steps=steps, schedule="noam").steps_of_warmup == warmup


def test_numpys_scalars_are_numbers():
    config = TrainConfig(np.int64(3), np.float32(0.5), betas=np.array([0.9, 0.5]), seed=np.uint8(1))
    assert config == TrainConfig(3, 0.5, betas=(0.9, 0.5), seed=1)
    assert type(config.steps) is int and type(config.learning_rate) is float
    assert config == TrainConfig(**json.loads(json.dumps(dataclasses.asdict(config))))
    with pytest.raises(ValueError, match="activation_checkpointing is 1"):
        TrainConfig(3, activation_checkpointing=1)


def test_every_field_has_a_rule():
    assert set(BAD) == {field.name for field in dataclasses.fields(TrainConfig)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "noam", "warmup_steps": 0}, 'warmup_steps is 0, .* with schedule="noam"'),
        ({"optimizer": "adam", "weight_decay": 0.1}, 'weight_decay is 0.1, .* optimizer="adam"'),
        ({"lr": 0.1}, "TrainConfig: no field 'lr'; it has steps, learning_rate"),
    ],
)
def test_rules_that_join_two_fields_and_misspelt_ones(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(steps=1, **changes)


def test_edges_of_the_rules_are_allowed_and_the_default_rate_depends_on_the_schedule():
    config = TrainConfig(steps=1, warmup_steps=0, clip=None, betas=[0, 0.0], weight_decay=0)
    assert config.clip is None and dataclasses.replace(config, steps=2).steps == 2
    assert config.betas == (0, 0.0) and TrainConfig(steps=1).precision == "float32"
    assert config.peak_learning_rate == 1e-3
    assert TrainConfig(steps=1, schedule="noam").peak_learning_rate == 1.0
    assert TrainConfig(steps=1, schedule="noam", learning_rate=0.5).peak_learning_rate == 0.5
