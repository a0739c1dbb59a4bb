"""The experiment on size and amount of text, as small as it runs."""

import pytest
import torch

from transformer_lesson.lessons.lesson_10 import size_and_text as experiment
from transformer_lesson.lessons.lesson_10.size_and_text import batches, build, loss_on, stored
from transformer_lesson.model.gpt import gpt_weights_of
from transformer_lesson.model.parameters import count_parameters


@pytest.mark.slow
def test_a_model_of_each_width_for_each_amount():
    text = torch.arange(3).repeat(200)  # 0 1 2 0 1 2 ...: soon known
    outcomes = experiment.size_and_text(
        text, text[:200], 3, widths=(4, 8), amounts=(300, 600), steps=30
    )
    grid = [(4, 300), (8, 300), (4, 600), (8, 600)]
    assert [(one.d_model, one.n_tokens) for one in outcomes] == grid
    assert outcomes[0].n_parameters < outcomes[1].n_parameters
    untrained = loss_on(text, gpt_weights_of(build(3, 8)))
    assert all(one.validation < untrained for one in outcomes)


def test_the_same_windows_for_the_same_seed():
    text = torch.arange(500)
    inputs, labels = next(batches(text, 2))
    assert inputs.shape == labels.shape == (16, 64) and torch.equal(inputs + 1, labels)
    assert torch.equal(next(batches(text, 1))[0], inputs)
    assert not torch.equal(next(batches(text, 1, seed=1))[0], inputs)


def test_what_is_stored_is_of_models_that_this_code_builds():
    for one in stored():
        assert one.n_parameters == count_parameters(build(1000, one.d_model))
    assert len({one[:3] for one in stored()}) == 12
