"""The map of the architecture: every part is drawn, explained, and opens its lesson."""

import io
import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.image import imread

from transformer_lesson.explorables import ArchitectureMap
from transformer_lesson.explorables.architecture_map import (
    BOXES,
    PARTS,
    UNITS,
    render_architecture_map,
)
from transformer_lesson.lessons import LESSONS


@pytest.mark.parametrize("part", PARTS)
def test_says_lesson_formula_and_shapes_of_the_chosen_part(part):
    text = render_architecture_map(part).text
    lesson, what, formula, shapes = PARTS[part]
    assert text.startswith(f"{part} (lesson {lesson})")
    assert all(fact in text for fact in (what, formula, shapes))
    assert re.search(r"d_model|d_head", shapes) or "(batch, head, query, key)" in shapes


def test_same_part_gives_the_same_bytes():
    again = render_architecture_map.__wrapped__("Attention")
    assert again == render_architecture_map("Attention")


def pixels(part: str) -> np.ndarray:
    return imread(io.BytesIO(render_architecture_map(part).png))[..., :3]


@pytest.mark.parametrize("part", PARTS)
def test_only_the_boxes_of_the_chosen_part_are_highlighted(part):
    plain = pixels("Token embedding" if part != "Token embedding" else "Linear + softmax")
    changed = np.abs(pixels(part) - plain).max(axis=2) > 0.01
    scale = np.array(changed.shape[::-1]) / UNITS
    for name, left, bottom, _, height, _ in BOXES:
        column = round((left + 0.5) * scale[0])  # near the left edge, where nothing lies on top
        row = round((UNITS[1] - bottom - height / 2) * scale[1])
        surrounding = [b for b in BOXES if b[0] == part and b[1] <= left <= b[1] + b[3]]
        within = any(b[2] <= bottom and b[2] + b[4] >= bottom + height for b in surrounding)
        if name == part or within:
            assert changed[row, column], name
        elif name not in ("Token embedding", "Linear + softmax"):
            assert not changed[row, column], name


def test_the_brief_of_each_lesson_has_its_parts():
    lesson_of = {part: PARTS[part].lesson for part in PARTS}
    assert lesson_of["Masked attention"] == lesson_of["Attention"] == "03"
    assert lesson_of["Add & norm"] == lesson_of["Feed-forward"] == "05"
    assert {lesson_of[p] for p in ("Decoder block", "Cross-attention", "Linear + softmax")} == {
        "07"
    }
    assert set(lesson_of.values()) == {f"{n:02}" for n in range(1, 8)}
    assert {name for name, *_ in BOXES} == set(PARTS)


def test_boxes_lie_beside_or_inside_one_another():
    for (_, x, y, w, h, _), (_, x2, y2, w2, h2, _) in combinations(BOXES, 2):
        apart = x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
        inside = x <= x2 and x2 + w2 <= x + w and y <= y2 and y2 + h2 <= y + h
        assert apart or inside


def test_choosing_a_part_changes_picture_and_link():
    shown = ArchitectureMap()
    links = {}
    for part in PARTS:
        shown.controls["part"].value = part
        (output,) = shown.link.outputs
        links[part] = re.search(r'href="([^"]+)"', output["data"]["text/html"]).group(1)
        assert part in shown.rendering.text
        assert part.replace("&", "&amp;") in shown.picture.value
    assert links["Attention"] == "03_attention.ipynb"
    assert links["Linear + softmax"] == "07_decoder.ipynb"
    assert set(links.values()) == {LESSONS[f"{n:02}"].file for n in range(1, 8)}


def test_is_a_widget_a_picture_and_a_line_of_text():
    data, metadata = ArchitectureMap("Feed-forward")._repr_mimebundle_()
    assert data["text/plain"] == "ArchitectureMap(part='Feed-forward')"
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"].startswith("Feed-forward (lesson 05)")
    assert "application/vnd.jupyter.widget-view+json" in data
