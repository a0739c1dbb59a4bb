"""The model that reads longer than it learned, and the ways to read with it."""

import pytest
import torch

from tests.parity import assert_equal
from transformer_lesson.lessons.lesson_13 import longer
from transformer_lesson.lessons.lesson_13.longer import read_otherwise, stored_reader
from transformer_lesson.lessons.lesson_13.sinks import seeing
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.positions import stretched_frequencies

IDS = torch.arange(100)[None] * 7 % 90


@torch.no_grad()
def test_a_copy_reads_as_the_model_does_and_through_a_window_as_with_its_mask():
    model = stored_reader()
    assert_equal(read_otherwise(model)(IDS), model(IDS))
    learned = longer.frequencies_of(model)
    assert_equal(read_otherwise(model, learned)(IDS), model(IDS))
    with seeing(model, window_mask(100, 9)):
        through = model(IDS)
    assert_equal(read_otherwise(model, window=9)(IDS), through)
    assert not torch.allclose(through, model(IDS), atol=0.1)  # the mask is gone again
    with seeing(model, causal_mask(100)):
        assert_equal(model(IDS), read_otherwise(model)(IDS))


@torch.no_grad()
def test_other_frequencies_are_other_positions():
    model = stored_reader()
    slow = read_otherwise(model, longer.frequencies_of(model) / 4)
    assert_equal(slow.decoder[0].self_attention.rotate(torch.ones(1, 9, 16))[:, 8],
                 model.decoder[0].self_attention.rotate(torch.ones(1, 3, 16))[:, 2])  # fmt: skip
    by_parts = read_otherwise(model, stretched_frequencies(16, 1e4, 64, 4.0))
    assert not torch.allclose(by_parts(IDS), model(IDS), atol=0.1)


def test_practice_trains_the_copy_alone():
    model = stored_reader()
    before = model.projection.weight.clone()
    copy = read_otherwise(model)
    longer.practice(copy, steps=1)
    assert torch.equal(model.projection.weight, before)
    assert not torch.equal(copy.projection.weight, before)


@pytest.mark.slow
def test_the_stored_model_is_the_one_of_the_table():
    found = longer.quarters(longer.loss_by_position(stored_reader()))
    for ours, kept in zip(found, longer.stored()["rotary"][0], strict=True):
        assert ours == pytest.approx(kept, abs=0.03)
