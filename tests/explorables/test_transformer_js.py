"""The model in the page computes what the package's does, at every hook point."""

import random
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.explorables.drawn_models import drawn_inputs, drawn_model
from tests.explorables.page_modules import in_node
from tests.noise.noise import switched_on
from transformer_lesson import (
    record,
)
from transformer_lesson.checkpoints.own_format import as_bytes
from transformer_lesson.lessons.lesson_11 import induction
from transformer_lesson.training import train

CLOSE = 5e-4 if switched_on() else 1e-4  # noise moves the package's numbers, too
CACHED = 5  # one input in so many is also read token by token, which takes as long again


def differences(folder: Path, inputs: list[tuple[nn.Module, list[dict]]]) -> list[str]:
    """Return the hook points at which a row of a model's batches has other numbers in the page."""
    cases, points = [], []
    for number, (model, batches) in enumerate(inputs):
        file = f"{number}.safetensors"
        (folder / file).write_bytes(as_bytes(model))
        for ids in batches:
            with torch.no_grad(), record(model) as run:
                values = {"result": model(*ids.values())}
            values |= run
            for row, result in enumerate(values["result"]):
                cached = "target" in ids and row % CACHED == 0
                rows = {key: one[row].tolist() for key, one in ids.items()}
                cases.append({"model": file, "cached": cached} | rows)
                same = {"cached": result} if cached else {}  # a cache changes nothing
                points.append({key: value[row] for key, value in values.items()} | same)
    shapes, numbers = in_node("forward.js", folder, cases)
    left, other = torch.from_numpy(numbers), []
    for ours, theirs in zip(points, shapes, strict=True):
        assert {name: list(value.shape) for name, value in ours.items()} == dict(theirs)
        for name, shape in theirs:
            page, left = left[: prod(shape)].view(shape), left[prod(shape) :]
            if not torch.allclose(page, ours[name], rtol=1e-4, atol=CLOSE):
                other.append(name)
    return other


def drawn_models() -> list[tuple[nn.Module, int]]:
    draw = random.Random(0)
    return [(drawn_model(draw, number), 9) for number in range(60)]


def induction_model() -> list[tuple[nn.Module, int]]:
    model = induction.AttentionOnlyDecoder()
    train(model, induction.RepeatedSequences(), replace(induction.TRAINING, steps=20))
    return [(model.eval(), induction.LENGTH)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "models, batches, rows",
    [(drawn_models, 1, 1), (induction_model, 5, 5)],
)
def test_every_hook_point_has_the_packages_numbers(tmp_path, models, batches, rows):
    draw = random.Random(batches)
    inputs = [
        (model, [drawn_inputs(draw, model, rows, longest) for _ in range(batches)])
        for model, longest in models()
    ]
    assert differences(tmp_path, inputs) == []
