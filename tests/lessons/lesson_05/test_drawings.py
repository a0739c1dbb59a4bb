"""What lesson 05 draws: a network's score, and runs with their intervals."""

import pytest
import torch

from transformer_lesson.intervals import wilson
from transformer_lesson.lessons.lesson_05 import learning, sublayers

ENDINGS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(("bias", "above"), [(0.0, "nothing yet"), (-1.0, "one s")])
def test_the_dots_are_the_networks_scores(bias, above):
    W_1, b_1, W_2, b_2 = map(torch.tensor, ([[1.0, 1.0]] * 2, [0.0, bias], [[1.0], [-2.0]], [-0.5]))
    drawn = sublayers.units_added(W_1, b_1, W_2, b_2)
    scores = (ENDINGS @ W_1 + b_1).relu() @ W_2 + b_2
    dots = drawn.axes[0].lines[-1].get_ydata()
    assert dots.tolist() == pytest.approx(scores[:, 0].tolist())
    assert drawn._suptitle.get_text() == f"Above 0: {above}"


def test_each_run_has_its_interval_on_the_half_of_the_axis_where_it_lies():
    right, others = {"one": 90, "other": 14}, {"one": [0.85], "other": []}
    drawn = learning.shares_right("Claim", right, 100, {"baseline": 0.86}, others)
    for axes, y, n in zip(drawn.axes, (1, 0), (14, 90), strict=True):
        (bar,) = (segment for one in axes.collections for segment in one.get_segments())
        assert bar[:, 0].tolist() == pytest.approx(wilson(n, 100)) and set(bar[:, 1]) == {y}
        low, high = axes.get_xlim()
        assert low < wilson(n, 100)[0] and wilson(n, 100)[1] < high
        assert [text.get_text() for text in axes.texts][-1] == f"{n / 100:.2f}"
