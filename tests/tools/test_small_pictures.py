"""The form in which the lessons store pictures: few colors, close to what was drawn."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from tests.stored_lessons import PATHS, cells, each_notebook
from tools.small_pictures import AT_EDGES, small
from transformer_lesson.figures.plots import heatmap


def png(pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(buffer, "png")
    return buffer.getvalue()


def as_seen(picture: bytes) -> np.ndarray:
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA")).astype(float)
    pixels[..., :3] *= pixels[..., 3:] / 255
    return pixels


SHADES = np.arange(256)[:, None, None]
FAINT = np.broadcast_to([213, 94, 0, 0], (256, 5, 4)) + SHADES * [0, 0, 0, 1]  # up to opaque
DRAWN = {
    "a figure": heatmap(np.linspace(0, 1, 35).reshape(5, 7), "Title", "Alt.").png(),
    "edges": png(np.tile(SHADES, (1, 1, 3))),
    "areas": png(np.tile(SHADES // 2 * 2, (1, 11, 3))),
    "opacity": png(FAINT),
}


@pytest.mark.slow
@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_a_small_picture_looks_like_what_was_drawn(drawn):
    stored = small(drawn)
    moved = np.abs(as_seen(stored) - as_seen(drawn)).max(axis=2)
    assert stored.startswith(b"\x89PNG") and moved.max() <= AT_EDGES + 1  # one for rounding
    here = as_seen(drawn)
    flat = (here[:-1, :-1] == here[1:, :-1]) & (here[:-1, :-1] == here[:-1, 1:])
    flat &= here[:-1, :-1] == here[1:, 1:]
    assert (moved[:-1, :-1][flat.all(axis=2)] == 0).all()
    assert small(stored) == stored


def test_too_many_colors_become_256_and_what_is_clear_stays_clear():
    noise = np.random.default_rng(0).integers(0, 256, (41, 43, 4))
    noise[:7, :] = [255, 255, 255, 0]
    stored = small(png(noise))
    picture = Image.open(io.BytesIO(stored))
    assert picture.mode == "P" and len(picture.getcolors()) <= 256 and small(stored) == stored
    assert (np.asarray(picture.convert("RGBA"))[:7] == noise[:7]).all()


@pytest.mark.slow
@each_notebook
def test_what_a_lesson_stores_is_small_and_so_are_all_together(path):
    assert path.stat().st_size <= 900_000 and sum(one.stat().st_size for one in PATHS) <= 8_000_000
    data = [output.get("data", {}) for cell in cells(path, "code") for output in cell["outputs"]]
    stored = [base64.b64decode("".join(d["image/png"])) for d in data if "image/png" in d]
    modes = {Image.open(io.BytesIO(picture)).mode for picture in stored}
    assert modes <= {"P"}, "run `make redraw`"
    for least in sorted(stored, key=len)[:1]:
        assert small(least) == least
