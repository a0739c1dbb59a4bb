"""What the lesson stores of twenty trainings, trained again for three starts of each kind."""

import json
from pathlib import Path

import pytest

from transformer_lesson.model.attention import scaled_dot_product_attention

LESSON = Path(__file__).parents[3] / "notebooks" / "03_attention.ipynb"
CELLS = ["5409e56a", "article-sentences", "article-reader", "article-training", "share-right"]
ALL, NONE = (True, True, True), (False, False, False)


@pytest.fixture(scope="module")
def lesson():
    """The names that the lesson's own cells define."""
    source = {
        cell["id"]: "".join(cell["source"]) for cell in json.loads(LESSON.read_text())["cells"]
    }
    names = {"sentence": "the child opens the window ."}
    for cell in CELLS:
        exec(source[cell], names)
    names["attend"] = scaled_dot_product_attention
    return names


@pytest.mark.everything
@pytest.mark.parametrize(
    ("switches", "learned"),
    [
        ({}, ALL),
        ({"root": False}, NONE),
    ],
)
def test_every_run_learns_with_the_root_and_none_without(switches, learned, lesson):
    shares = [
        lesson["share_right"](lesson["trained"](seed, d_k=256, **switches)) for seed in range(3)
    ]
    assert tuple(share >= 0.97 for share in shares) == learned, shares
