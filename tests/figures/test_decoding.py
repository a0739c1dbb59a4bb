"""Drawings of writing."""

import pytest
import torch

from transformer_lesson.figures import decoding

TREE = {"<bos>": {"a": 0.6, "b": 0.4}, "a": {"x": 0.5, "y": 0.5}, "b": {"z": 1.0}}
LINES = {
    "greedy": [("red", -1.0), ("mouse", -2.0), (".", -2.5)],
    "beam": [("mouse", -1.2), (".", -1.4)],
}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (decoding.word_tree("Tree", TREE, "<bos>", ["a", "b", "z"]), "b z 0.40"),
        (decoding.race("Race", LINES), "beam: mouse -1.2, . -1.4"),
        (
            decoding.kept_words(
                "Kept", {"a": {"x": 0.7, "y": 0.3}, "b": {"z": 1.0}}, {"a": 2, "b": 1}, 1
            ),
            "After a top-p keeps 2 of 2 words",
        ),
        (decoding.cache_steps("Cache", ["<bos>", "$a$", "b"]), "all 6 entries"),
        (
            decoding.accepted_and_missing(
                "Guesses", ["a", "b"], torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
            ),
            "a 0.50 and 0.80, b 0.50 and 0.20",
        ),
    ],
)
def test_drawings_tell_what_they_show(made, told):
    assert made.png().startswith(b"\x89PNG") and told in made.alt


def test_a_kept_branch_is_blue_and_another_dotted():
    lines = decoding.word_tree("Tree", TREE, "<bos>", ["a", "x"]).axes[0].lines
    styles = [(line.get_color() == decoding.KEPT, line.get_linestyle()) for line in lines]
    assert styles == [(True, "-"), (False, ":"), (True, "-"), (False, ":"), (False, ":")]


def test_bars_of_guesses_add_up_to_the_large_model():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    axes = decoding.accepted_and_missing("Guesses", ["a", "b"], p, q).axes[0]
    accepted, refused, missing = ([bar.get_height() for bar in c] for c in axes.containers)
    assert [a + m for a, m in zip(accepted, missing, strict=True)] == pytest.approx(p.tolist())
    assert [a + r for a, r in zip(accepted, refused, strict=True)] == pytest.approx(q.tolist())
