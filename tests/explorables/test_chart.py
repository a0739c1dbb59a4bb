"""Axes for curves: where points lie, which numbers are written, what is left out."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.chart import Chart, log_ticks, thinned, ticks, widened


def chart(ys, xs=(0, 100), log=False) -> Chart:
    return Chart(Canvas("", 400, 300), 50, 40, 200, 100, xs, ys, log)


def test_points_lie_in_proportion_and_zero_is_at_the_bottom():
    drawn = chart([1.0, 4.0])
    left, bottom = drawn.place(0, 0)
    assert (left, bottom) == (50, 140)
    right, top = drawn.place(100, 4.0)
    assert right == 250 and 40 < top < 45
    assert drawn.place(50, 2.0) == ((left + right) / 2, pytest.approx((bottom + top) / 2))


def test_equal_factors_get_equal_heights_on_a_log_axis():
    drawn = chart([0.01, 100.0], log=True)
    heights = [drawn.place(0, y)[1] for y in (0.01, 0.1, 1, 10, 100)]
    assert np.allclose(np.diff(heights), heights[1] - heights[0])
    assert heights[0] == 140


def test_what_has_no_place_is_left_out():
    points = [(1, 2.0), (2, math.nan), (3, math.inf), (4, -1.0), (5, 0.0)]
    assert chart([2.0]).drawable(points) == [(1, 2.0), (4, -1.0), (5, 0.0)]
    assert chart([2.0], log=True).drawable(points) == [(1, 2.0)]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "ys", [[], [math.nan], [0.0], [5.0], [5.0, 5.0], [1e-12, 1e12], [-3.0, -1.0], [1.0, 1 + 1e-15]]
)
def test_any_values_give_axes(ys, log):
    drawn = chart(ys, log=log)
    drawn.axes("step", "loss")
    end = drawn.line([(i, y) for i, y in enumerate(ys)], "#000000")
    assert (end is None) == (not drawn.drawable([(0, y) for y in ys]))


@pytest.mark.parametrize("low, high", [(0, 1), (0, 7.3), (0.31, 0.45), (1, 350), (0, 1e9), (-2, 3)])
def test_a_few_round_numbers_mark_an_axis(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high * (1 + 1e-9) for tick in found)
    steps = np.diff(found)
    assert np.allclose(steps, steps[0])
    assert f"{steps[0]:.0e}"[0] in "125"


@pytest.mark.parametrize("low, high", [(0.3, 6), (0.31, 0.45), (1e-8, 1e8), (1, 1e30)])
def test_log_ticks_are_few_and_inside(low, high):
    found = log_ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low <= tick <= high for tick in found)


def test_long_curves_are_thinned_to_means():
    points = [(float(i), float(i % 2)) for i in range(10_000)]
    few = thinned(points, 100)
    assert len(few) == 100
    assert few[0] == (49.5, 0.5)
    assert thinned(points[:100], 100) == points[:100]


def test_one_value_gets_a_range():
    assert widened([3.0]) == (3.0, 6.0)
    assert widened([]) == (0.0, 1.0)


def test_a_curve_leaves_its_color():
    drawn = chart([0.0, 1.0])
    end = drawn.line([(0, 1.0), (100, 0.0)], "#FF0000", dots=True)
    assert end == (250, 140)
    pixels = np.asarray(Image.open(io.BytesIO(drawn.page.png())))
    assert (pixels[135:146, 245:256] == (255, 0, 0)).all(-1).sum() > 40  # the dot at its end
