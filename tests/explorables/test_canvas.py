"""Boxes and words on paper."""

import io
import time

import numpy as np
import pytest
from PIL import Image

from tests.patience import AT_ONCE
from transformer_lesson.explorables.canvas import Canvas, drawn_width, fitted, pale
from transformer_lesson.figures.plots import COLORS


def pixels(canvas: Canvas) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(canvas.png())))


def test_box_lies_where_it_was_asked_for():
    canvas = Canvas("", 60, 60)
    canvas.box(10, 40, 20, 10, fill="#0072B2", edge="#0072B2")
    rows, columns = np.nonzero((pixels(canvas) != 255).any(axis=-1))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (40, 50, 10, 30)


@pytest.mark.parametrize("width", [20, 50, 100, 1000])
def test_fitted_text_is_no_wider_than_asked(width):
    text = "an unusually long sentence for so small a box"
    short = fitted(text, 12, width)
    assert drawn_width(short, 12) <= width
    assert short == text if width == 1000 else short.endswith("…")


def test_a_very_long_text_is_cut_at_once():
    start = time.process_time()
    assert fitted("a" * 50_000, 12, 50).endswith("…")
    assert time.process_time() - start < AT_ONCE


@pytest.mark.parametrize("color", COLORS[:6])
def test_black_words_can_be_read_on_pale_colors(color):
    parts = [int(pale(color)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert (luminance + 0.05) / 0.05 >= 7  # WCAG's highest level


def test_curve_and_turned_words_leave_ink():
    canvas = Canvas("", 100, 100)
    canvas.curve([(10.0, 90.0), (90.0, 60.0)], "#000000")
    inked = (pixels(canvas)[..., 0] < 100).sum()
    canvas.turned(50, 50, "value")
    assert 100 < inked < (pixels(canvas)[..., 0] < 100).sum()


def test_hatch_stripes_a_rectangle_and_nothing_else():
    canvas = Canvas("", 80, 80)
    canvas.hatch(20, 30, 40, 20)
    inked = (pixels(canvas) == 0).all(axis=-1)
    assert 0.1 < inked[30:50, 20:60].mean() < 0.5
    assert inked.sum() == inked[30:50, 20:60].sum()
    canvas.hatch(0, 0, 0.4, 20)  # too narrow to be seen
    assert (pixels(canvas) == 0).all(axis=-1).sum() == inked.sum()


def test_turned_words_may_end_at_a_place():
    canvas = Canvas("", 60, 120)
    canvas.turned(30, 40, "value 🦄", end=True, width=60)
    rows = np.nonzero((pixels(canvas)[..., 0] < 100).any(axis=1))[0]
    assert 40 <= rows.min() < 50 and rows.max() < 110
