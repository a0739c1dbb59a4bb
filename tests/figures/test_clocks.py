"""Drawings of positions."""

import torch

from transformer_lesson import sinusoidal_encoding
from transformer_lesson.figures.clocks import bits_and_waves, clock_hands


def test_a_hand_points_up_at_0_and_turns_to_the_right():
    made = clock_hands([0, 1, 70], ["a", "b", "…"], [1.0, 0.1], "Hands")
    assert made.png().startswith(b"\x89PNG") and "6.3, 62.8" in made.alt
    hands = [line.get_xydata() for line in made.axes[0].lines if len(line.get_xdata()) == 2]
    assert len(hands) == 6
    (x, y), tip = hands[0]
    assert tip[0] == x and tip[1] < y  # the axis of y points down
    right_of_it = hands[2]  # position 1, the fast hand
    assert right_of_it[1, 0] > right_of_it[0, 0] and right_of_it[1, 1] < right_of_it[0, 1]


def test_bits_stand_beside_waves():
    bits = torch.tensor([[pos >> b & 1 for b in range(3)] for pos in range(8)])
    made = bits_and_waves(bits, sinusoidal_encoding(8, 6))
    assert made.png().startswith(b"\x89PNG") and len(made.axes) == 2
