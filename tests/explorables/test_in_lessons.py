"""Each explorable as its lesson opens it: seen at one look, its task open at first, then done."""

import json
from types import SimpleNamespace

import pytest

from tests.explorables.shown import HOST
from tests.lessons import ROOT
from tools.site_stills import models_of, stored_weights
from transformer_lesson.explorables.html import whole_page

STILLS = ROOT / "docs" / "stills"
LATER = ("11", "13", "14", "15")  # lessons whose explorables have no tasks yet
SOLVED = {  # by lesson and cell, what a learner sets who solves the task
    "00/24f2edd5": {"sentence": "the child closes the window ."},
    "00/forced-dass-shown": {"forced": [[2, "schließt"]]},
    "01/7edb2b45": {"text": "Notebook"},
    "02/b197adc9": {"d_model": 4, "base": 10, "position": 10, "distance": 19},
    "03/0e2c91ba": {"head": 5, "query": 2},
    "03/masked-the-shown": {"mask": "own"},
    "03/1745176f": {"side": "left"},
    "04/be0be7c7": {"transposed": True},
    "04/adjective-between-shown": {
        "sentence": "two women believe that the women wash this bird .",
        "query": 4,
    },
    "05/stream-drawn": {"point": 5, "row": 0},
    "05/unit-335-tested": {"text": "the cat sleeps because the dog sees the frog .", "row": 4},
    "05/c67e969b": {"norm": "layer", "epsilon": 10},
    "06/73b4d1ca": {"step": 1, "row": 3},
    "06/articles-without-heads": {
        "removed": [["encoder.1.self_attention", 3], ["encoder.1.self_attention", 2]]
    },
    "07/0c1d4300": {"step": 37},
    "07/381cc010": {"model": "a second attention, unmasked", "position": 5},
    "07/0e1dad53": {"model": "B", "position": 5},
    "08/506e2c13": {"logarithmic": True},
    "08/06ddecb4": {"logarithmic": True},
    "08/1e6d0eda": {"logarithmic": True},
    "08/5044e6bd": {"number": 100},
    "08/playground": {"forced": [[9, "sieht"]]},
    "09/1d01777a": {"step": 12},
    "09/sausage": {"top_p": 0.5},
    "10/51225f64": {"logarithmic": True},
    "10/5-the-stepper": {"strategy": "greedy", "step": 40},
    "12/every-head": {"step": 2},
}
DONE = """[root.querySelector(".task").checkVisibility(), "done" in
    root.querySelector(".task").dataset]"""
SIZE = """(node => [node.scrollWidth > node.clientWidth, node.offsetHeight])(
    root.querySelector("section"))"""
TALLEST = {848: 620, 944: 620, 1280: 620, 390: 1400}
"""Pixels, by the width of JupyterLab's output and the site's column, both in a window of 1280, of a
window that has nothing else, and of a phone, where what moves and what moves it come together."""


def stills() -> dict[str, dict]:
    """The explorables of all lessons, by lesson and cell."""
    paths = STILLS.glob("*/*.json")
    found = {f"{path.parent.name[:2]}/{path.stem}": json.loads(path.read_text()) for path in paths}
    return {name: one for name, one in found.items() if "values" in one}  # no attention view


def test_every_explorable_of_the_story_has_a_task_and_its_solution():
    kinds = {name: one["kind"] for name, one in stills().items() if name[:2] not in LATER}
    assert set(SOLVED) == {name for name in kinds if kinds[name] != "ArchitectureMap"}  # a signpost


@pytest.mark.parametrize("name", stills())
def test_it_is_seen_at_one_look_and_its_task_is_done_when_it_is_solved(name, show):
    still, weights = stills()[name], stored_weights(STILLS)
    page = whole_page([still], {key: weights[key] for key in models_of(still)})
    shown = show(SimpleNamespace(save_html=lambda path: path.write_text(page, "utf-8")))
    for width, most in TALLEST.items():
        shown.page.set_viewport_size({"width": width + 24, "height": 800})  # and its margins
        shown.page.wait_for_function(f"() => {HOST}.clientWidth === {width}")
        shown.set()
        wider, height = shown.read(SIZE)
        assert not wider and height <= most, f"{height} pixels tall where {width} wide"
    if name in SOLVED:
        assert shown.read(DONE) == [True, False]
        shown.set(**SOLVED[name])
        assert shown.read(DONE) == [True, True]
