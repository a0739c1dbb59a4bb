"""A picture cut in the page: each pixel goes where `patches` puts it."""

import torch

from transformer_lesson.explorables import PatchExplorer
from transformer_lesson.lessons.lesson_07.vision import draw_digits, patches

CELLS = """[...root.querySelectorAll("svg [data-of]")].map(node =>
    [Number(node.getAttribute("y")), Number(node.getAttribute("x")), node.dataset.of])"""
IDS = torch.arange(256.0).reshape(1, 16, 16)


def test_every_pixel_is_told_and_drawn_where_the_package_puts_it(show):
    page = show(PatchExplorer())
    for size in (2, 4, 8):
        page.set(size=size, stage=2)
        order = patches(IDS, size)[0].long()
        places = {
            pixel: f"number {number} of token {token}"
            for token, row in enumerate(order.tolist())
            for number, pixel in enumerate(row)
        }
        assert [one.split(": ")[1] for one in page.told()] == [places[i] for i in range(256)]
        drawn = [name for _, _, name in sorted(page.read(CELLS))]
        assert drawn == [f"pixel{i // 16}.{i % 16}" for i in order.flatten().tolist()]
        weights = f"{(len(order) + 1) ** 2:,}"
        assert page.title.startswith(f"Squares of {size} × {size} make {len(order)} tokens of ")
        assert f" = {weights} weights" in page.said


def test_its_digits_are_the_lessons_and_a_click_follows_a_pixel(show):
    explorable, drawn = PatchExplorer(digit=7), draw_digits(100, seed=1)
    own = torch.tensor(explorable.pictures)
    for digit in range(10):
        first = drawn.labels.tolist().index(digit)
        assert (own[digit] - drawn.pictures[first]).abs().max() <= 0.051
    page = show(explorable)
    page.page.get_by_label("row 7, column 15, ink").click(force=True)
    assert page.get("row", "column") == [7, 15]
