"""What the drawings of lesson 12 and of what follows it show, and what they say of it."""

import re

import pytest
import torch

from transformer_lesson.checkpoints.layer_by_layer import Comparison, Difference
from transformer_lesson.lessons.lesson_12 import asking, figures
from transformer_lesson.lessons.lesson_12.exercises import Letters
from transformer_lesson.lessons.lesson_12.removal import Part
from transformer_lesson.text.pretrained import chat_prompt


def test_a_size_has_its_error_and_its_bits():
    made = figures.errors_by_size("Claim", [8, 16, 32, 1000], [0.05, 0.07, 0.08, 0.29])
    (axes,) = made.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["8\n8.0", "16\n6.0", "32\n5.0", "1,000\n4.0"]
    assert list(axes.lines[-1].get_ydata()) == [0.05, 0.07, 0.08, 0.29]
    assert "8 5%, 16 7%, 32 8%, 1,000 29%" in made.alt


def test_each_row_of_the_file_has_a_line_to_its_place_in_ours():
    (axes,) = figures.order_of_rows("Claim").axes
    places = [tuple(line.get_xdata()) for line in axes.lines]
    assert places == [(0, 0), (1, 4), (2, 1), (3, 5), (4, 2), (5, 6), (6, 3), (7, 7)]
    colors = [line.get_color() for line in axes.lines]
    assert colors[::2] == colors[1::2] and len(set(colors)) == 4


def test_a_difference_is_a_share_of_a_sublayers_largest_number():
    names = ["embedding", "decoder.0.self_attention", "decoder.0.feed_forward", "decoder.0"]
    parts = [Difference(name, name, 0.2 * i, 4.0) for i, name in enumerate(names)]
    shares = figures.sublayer_differences(Comparison(parts))
    assert shares == pytest.approx([0.05, 0.1])
    made = figures.matrix_forgotten("Claim", [1e-8] * 60, [1e-8] * 24 + [0.1] * 36)
    assert [len(line.get_ydata()) for line in made.axes[0].lines[:2]] == [60, 60]


def test_framed_heads_stand_in_their_columns():
    scores = torch.zeros(3, 2)
    scores[2, 1], scores[1, 0] = 0.9, 0.4
    made = figures.scores_of_heads("Claim", scores, [(2, 1), (1, 0)])
    assert made.axes[0].collections[-1].get_offsets().tolist() == [[2, 1], [1, 0]]
    assert "0.90, of head 2.1. Framed are 2 heads in blocks 1 to 2" in made.alt


class Spelled(Letters):
    """Characters and two marks, as tokens that can be read."""

    def token(self, id_: int) -> str:
        marks = {number: mark for mark, number in self.vocabulary.items()}
        return marks.get(id_) or repr(chr(id_ - 100))[1:-1]


def test_each_id_stands_above_its_token():
    spelled = Spelled(1, 2)
    rows = asking.ids_and_tokens(spelled, asking.SHOWN[1]).split("\n")
    assert max(map(len, rows)) <= 100
    shown = []
    for ids, tokens in zip(rows[::2], rows[1::2], strict=True):
        for found in re.finditer(r"\d+", ids):
            shown.append(int(found[0]))
            assert tokens[found.start() :].startswith(spelled.token(shown[-1]))
    assert shown == chat_prompt(spelled, asking.SHOWN[1])


def test_a_heads_cost_stands_over_its_score_and_some_have_names():
    heads = {Part(16, 0): (0.0, 5.3), Part(18, 6): (0.86, 1.8), Part(2, 1): (0.3, -0.1)}
    made = figures.costs_by_score("Claim", heads, [Part(18, 6), Part(16, 0)])
    (dots, zero), names = made.axes[0].lines, made.axes[0].texts
    assert list(zip(*dots.get_data(), strict=True)) == [*heads.values()] and zero is not dots
    assert {one.get_text(): one.xy for one in names} == {
        "16.0": heads[Part(16, 0)],
        "18.6": heads[Part(18, 6)],
    }
    assert made.alt.endswith("16.0 +5.3 at 0.00, 18.6 +1.8 at 0.86.")
