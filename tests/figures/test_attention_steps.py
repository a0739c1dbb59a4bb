"""Drawings of attention say in words what they show, and draw it."""

import pytest
import torch

from transformer_lesson.figures import attention_steps
from transformer_lesson.files import printable

NAMES = ["the", "$x_1", "<b>", "child"]


@pytest.fixture
def vectors():
    return torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))


def test_maps_name_the_strong_weights():
    weights = torch.tensor([[0.1, 0.9], [0.5, 0.5]])
    made = attention_steps.weight_maps("Claim", {"a": weights, "b": weights * 0}, ["x", "y"])
    assert "a: x to y 0.90, y to x 0.50, y to y 0.50" in made.alt
    assert "b: no weight of 0.4 or more" in made.alt
    assert len(made.axes) == 2 and made.png()


def test_one_map_is_enough_and_keys_may_have_names_of_their_own():
    made = attention_steps.weight_maps("Claim", {"a": torch.ones(2, 3)}, ["x", "y"], list("abc"))
    assert "x to c 1.00" in made.alt and made.png()


def test_arrows_tell_the_scores(vectors):
    Q, K, _ = vectors
    made = attention_steps.keys_around_query("Claim", Q[1], K, NAMES, 1)
    score = (Q[1] @ K[3] / 6**0.5).item()
    assert f"child {score:.1f}" in made.alt and made.png()


def test_a_path_tells_the_weights(vectors):
    Q, K, V = vectors
    made = attention_steps.query_path("Claim", Q[1], K, V, NAMES, 1)
    weight = (K @ Q[1] / 6**0.5).softmax(0)[3].item()
    assert f"child {weight:.2f}" in made.alt and made.png()


@pytest.mark.parametrize("mask", [None, torch.ones(4, 4).tril().bool()])
def test_the_flow_has_a_step_for_the_mask(vectors, mask):
    made = attention_steps.data_flow("Claim", *vectors, NAMES, 2, mask)
    shown = {text.get_text() for text in made.axes[0].texts}
    assert {"softmax", "times V", "weights  (4, 4)", "output  (4, 6)"} <= shown
    assert set(map(printable, NAMES)) <= shown
    frames = made.axes[0].patches
    assert len(frames) == (4 if mask is None else 5)  # Q, scores, masked scores, weights, output
    assert {frame.get_height() for frame in frames} == {attention_steps.INCHES}
    assert f"The row of {NAMES[2]} is framed" in made.alt
    assert ("mask" in shown) == ("mask" in made.alt) == (mask is not None)
    assert made.png()


def test_heads_stand_side_by_side():
    x, weights, heads = torch.randn(4, 6), torch.rand(2, 4, 4), torch.randn(2, 4, 3)
    made = attention_steps.heads_side_by_side("Claim", x, weights, heads, x, list("abcd"))
    assert [text.get_text() for text in made.axes[0].texts].count("head 1") == 1
    assert "2 heads" in made.alt and "side by side (4, 6)" in made.alt and made.png()
