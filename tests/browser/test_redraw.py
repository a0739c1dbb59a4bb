"""`make redraw`: a stored lesson's explorables, drawn anew by a real Chromium."""

import os

import nbformat
import pytest

from tests.browser.lab import REPOSITORY
from tools.browser import chromium_program
from tools.explorable_pictures import camera
from tools.redraw import redraw
from tools.site_stills import stored_weights

without = chromium_program() is None and "CI" not in os.environ
pytestmark = [
    pytest.mark.browser,
    pytest.mark.everything,
    pytest.mark.skipif(without, reason="there is no Chromium"),
]

LESSON = REPOSITORY / "notebooks/11_what_heads_learn.ipynb"  # with a model of its own


def test_a_lesson_drawn_anew_is_the_one_that_is_stored(tmp_path):
    copy = tmp_path / LESSON.name
    before = nbformat.read(LESSON, as_version=4)
    emptied = nbformat.from_dict(before)
    drawn = take_pictures(emptied)
    nbformat.write(emptied, copy)
    with camera() as draw:
        redraw(copy, draw, stored_weights(REPOSITORY / "docs/stills"))
    after = nbformat.read(copy, as_version=4)
    assert len(drawn) > 1 and take_pictures(after) == drawn
    take_pictures(before)
    assert after == before


def take_pictures(notebook) -> dict[str, str]:
    """Replace the explorables' pictures, which other fonts draw otherwise; return what they say."""
    said = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("metadata", {}).get("image/png", {})
            if shown.keys() == {"alt"}:  # matplotlib's have a width
                said[cell.id], shown.alt = shown.alt, ""
                output.data["image/png"] = ""
    return said
