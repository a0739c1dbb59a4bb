"""Heads that were written down look where they should."""

import pytest
import torch

from transformer_lesson.interpretability.programmed_heads import look_back_head
from transformer_lesson.model.attention import scaled_dot_product_attention
from transformer_lesson.model.positions import sinusoidal_encoding


@pytest.mark.parametrize("steps", [-3, 0, 1, 5])
def test_a_query_is_the_encoding_of_the_place_it_looks_for(steps):
    places = sinusoidal_encoding(30, 12, base=50.0)
    queries = places @ look_back_head(12, steps, base=50.0)
    inside = range(max(0, steps), min(30, 30 + steps))
    wanted = places[[position - steps for position in inside]]
    assert torch.allclose(queries[list(inside)], wanted, atol=1e-5)


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_attention_finds_that_place(steps):
    places = sinusoidal_encoding(9, 128)
    queries = 64 * places @ look_back_head(128, steps)
    _, weights = scaled_dot_product_attention(queries, places, places)
    assert (weights.diagonal(-steps) > 0.9).all()


def test_two_steps_are_a_step_taken_twice():
    once, twice = (look_back_head(10, steps) for steps in (1, 2))
    assert torch.allclose(once @ once, twice, atol=1e-6)
