"""Which stored training runs are drawn, and what is said about them."""

import io
from itertools import product

import pytest
from PIL import Image

from transformer_lesson.experiments import since_2017
from transformer_lesson.experiments.since_2017 import (
    INITIALIZATIONS,
    NORM_POSITIONS,
    WARMUPS,
    Setting,
)
from transformer_lesson.explorables.paper_vs_practice import (
    PaperVsPractice,
    render_paper_vs_practice,
)

GOOD, BAD = Setting("pre", 0, "small"), Setting("post", 20, "xavier")
CURVES = {GOOD: [[3.0, 2.0], [3.0, 2.2]], BAD: [[3.5, 3.1], [3.4, 2.3]]}


def test_the_text_says_what_is_drawn():
    assert render_paper_vs_practice(CURVES, BAD, 2).text == (
        "Post-norm, warm-up 20, Xavier weights, step 10: loss 2.30 to 3.10 over 2 seeds. At the "
        "end its mean is 2.70, place 2 of 2; the best, 2.10, has pre-norm, no warm-up, small "
        "weights. 1 of its seeds end more than 0.3 above that."
    )
    assert "step 5: loss 3.00 to 3.00" in render_paper_vs_practice(CURVES, GOOD, 1).text


def test_a_run_that_diverged_and_one_alone_are_drawn():
    curves = {GOOD: [[3.0, 2.0, 1.9]], BAD: [[3.5]]}
    for setting, point in product(curves, (1, 2, 3)):
        drawn = render_paper_vs_practice(curves, setting, point)
        assert "over one seed" in drawn.text
        assert drawn == render_paper_vs_practice(curves, setting, point)


@pytest.mark.slow
@pytest.mark.parametrize("place", list(product(NORM_POSITIONS, WARMUPS, INITIALIZATIONS)))
def test_every_setting_is_stored_and_drawn(place):
    shown = PaperVsPractice(*place)
    assert shown.rendering.text.lower().startswith(f"{place[0]}-norm")
    assert "over 3 seeds" in shown.rendering.text
    image = Image.open(io.BytesIO(shown.rendering.png))
    assert image.width == 900 and image.height < 500


@pytest.mark.slow
def test_every_control_draws_a_new_picture():
    shown = PaperVsPractice()
    changes = {"norm_position": "pre", "warmup_steps": 100, "initialization": "small", "point": 3}
    for name, value in changes.items():
        before = shown.rendering
        shown.controls[name].value = value
        assert shown.rendering.png != before.png and shown.rendering.text != before.text
    assert repr(shown) == (
        "PaperVsPractice(norm_position='pre', warmup_steps=100, initialization='small', point=3)"
    )


def test_missing_curves_say_how_they_are_made(monkeypatch, tmp_path):
    since_2017.stored_grid.cache_clear()
    monkeypatch.setattr(since_2017, "DATA", tmp_path)
    try:
        shown = PaperVsPractice()
        assert "`python -m benchmarks.paper_vs_practice` makes it again" in shown.rendering.text
        shown.controls["warmup_steps"].value = 20
    finally:
        since_2017.stored_grid.cache_clear()
