"""How every test runs: one thread a worker, and shapes checked at each call."""

import os

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
