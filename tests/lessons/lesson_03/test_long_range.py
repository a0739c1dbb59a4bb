"""Two readers of one size; both learn what is near."""

import pytest
import torch

from transformer_lesson.lessons.lesson_03 import long_range
from transformer_lesson.lessons.lesson_03.long_range import LONGEST, AttendingReader, accuracy_at
from transformer_lesson.model.parameters import count_parameters

READERS = (long_range.RecurrentReader, AttendingReader)


def test_they_have_about_the_same_size():
    recurrent, attending = (count_parameters(make()) for make in READERS)
    assert abs(recurrent - attending) < 0.05 * recurrent


@pytest.mark.parametrize("make", READERS)
def test_each_learns_what_is_near(make):
    assert accuracy_at(make, distance=2, steps=120) > 0.9


def test_training_leaves_the_random_numbers_of_the_notebook_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    accuracy_at(AttendingReader, distance=1, steps=1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("distance", [0, LONGEST])
def test_a_distance_that_cannot_be_read_is_refused(distance):
    with pytest.raises(ValueError, match="distance"):
        accuracy_at(AttendingReader, distance)
