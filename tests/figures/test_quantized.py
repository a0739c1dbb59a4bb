"""Drawings of numbers in few bits, and of what heads are worth."""

import numpy as np
import torch

from transformer_lesson.figures import quantized


def test_a_blocks_numbers_lie_on_its_levels():
    levels = torch.linspace(-1, 2, 16)
    numbers = levels[torch.tensor([0, 3, 3, 15])]
    made = quantized.block_of_levels("Block", numbers, levels, numbers + 0.05)
    assert made.png().startswith(b"\x89PNG")
    assert "4 numbers on 16 levels from -1.00 to 2.00, 3 of which are used" in made.alt
    assert "more than 0.0500" in made.alt
    dots = made.axes[0].lines[-1].get_ydata()
    assert np.isin(np.float32(dots), levels.numpy()).all()


def test_every_trial_is_a_dot():
    made = quantized.second_time("Heads", 3.5, {"best": [12.7], "others": [3.6, 4.0]})
    assert "best: 12.7; others: 3.6, 4.0. Whole model: 3.5" in made.alt
    drawn = [len(line.get_xdata()) for line in made.axes[0].lines[1:]]
    assert drawn == [1, 2] and made.png().startswith(b"\x89PNG")
