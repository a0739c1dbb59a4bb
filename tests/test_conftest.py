"""How every test runs: one thread a worker, and shapes checked at each call."""

import os
from pathlib import Path
from types import SimpleNamespace

import jaxtyping
import pytest
import torch

from transformer_lesson import padding_mask
from transformer_lesson.training.loss import label_smoothed_loss


def test_two_workers_do_not_fight_over_the_cores():
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])


def test_shapes_are_checked_in_this_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        padding_mask(torch.zeros(2, 3), pad_id=0)  # ids are whole numbers
    with pytest.raises(jaxtyping.TypeCheckError):
        label_smoothed_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3), 0.1, 0)  # labels too


@pytest.mark.parametrize(
    ("path", "parameters", "is_of_13"),
    [
        ("tests/lessons/lesson_13/test_longer.py", None, True),
        ("notebooks/13_since_2017.ipynb", None, True),
        ("tests/exercises/test_hints.py", "counts", True),
        ("tests/exercises/test_hints.py", "padding_mask", False),
        ("tests/explorables/test_in_lessons.py", "13/length-explorer", True),
        ("tests/explorables/test_in_lessons.py", "03/steps", False),
        ("tests/browser/test_lessons.py", "13_since_2017.ipynb", True),
    ],
)
def test_what_is_of_a_lesson(request, path, parameters, is_of_13):
    root = request.config.rootpath
    settings = request.config.pluginmanager.getplugin(str(root / "conftest.py"))
    item = SimpleNamespace(path=root / Path(path))
    if parameters:
        item.callspec = SimpleNamespace(id=parameters)
    assert settings.is_of("13", item) == is_of_13
