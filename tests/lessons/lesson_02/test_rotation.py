"""The rotation from one code to another leads from every position to the one as far away."""

import pytest
import torch

from transformer_lesson.lessons.lesson_02.rotation import rotation_between
from transformer_lesson.model.positions import sinusoidal_encoding


@pytest.mark.parametrize("k", [-3, 0, 1, 7])
def test_a_shift_is_one_rotation_everywhere(k):
    encoding = sinusoidal_encoding(40, 10, base=50.0)
    moved = encoding[3:33] @ rotation_between(encoding[20], encoding[20 + k])
    torch.testing.assert_close(moved, encoding[3 + k : 33 + k], atol=1e-5, rtol=0)


def test_codes_of_an_odd_size_are_refused():
    with pytest.raises(ValueError, match="the codes have 3 numbers"):
        rotation_between(torch.zeros(3), torch.zeros(3))
