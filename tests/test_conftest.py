"""How every test runs: one thread a worker, and shapes checked at each call."""

import os

import jaxtyping
import pytest
import torch

from transformer_lesson import padding_mask
from transformer_lesson.exercises.lesson_14.repairs import next_token_loss


def test_two_workers_do_not_fight_over_the_cores():
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])


def test_shapes_are_checked_in_this_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        padding_mask(torch.zeros(2, 3), pad_id=0)  # ids are whole numbers
    with pytest.raises(jaxtyping.TypeCheckError):
        next_token_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3))  # labels too
