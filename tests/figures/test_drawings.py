"""Drawings of the lessons say in words what they show, and draw it."""

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from transformer_lesson.figures.attention_steps import heads_side_by_side
from transformer_lesson.figures.attention_view.drawings import MIME, load_ipython_extension
from transformer_lesson.figures.attention_view.view import head_view
from transformer_lesson.lessons.lesson_05 import learning
from transformer_lesson.lessons.lesson_09 import figures as decoding
from transformer_lesson.lessons.lesson_10 import figures as language
from transformer_lesson.lessons.lesson_11 import figures as circuits
from transformer_lesson.lessons.lesson_12 import figures as quantized
from transformer_lesson.lessons.lesson_13 import figures as since
from transformer_lesson.lessons.lesson_16 import figures as adapters


def assert_told(figure, *said: str):
    """Fail if a figure cannot be drawn or does not say this; return its first axes."""
    assert figure.png().startswith(b"\x89PNG")
    for one in said:
        assert one in figure.alt, figure.alt
    return figure.axes[0]


def test_a_kernel_with_the_extension_shows_what_a_page_needs():
    shell = InteractiveShell()
    load_ipython_extension(shell)
    view = head_view([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    data, _ = shell.display_formatter.format(view)
    assert data[MIME] == view.drawing
    assert data["text/plain"] == repr(view) and "image/png" in data


# What no lesson's stored output tells, because its numbers differ from machine to machine

RACE = {
    "greedy": [("red", -1.0), ("mouse", -2.0), (".", -2.5)],
    "beam": [("mouse", -1.2), (".", -1.4)],
}
KERNELS = {"one": [0.7, 0.2, 0.1], "two": [0.1, 0.8, 0.1]}
TABLES = {"head": torch.full((3, 3), 0.5).fill_diagonal_(-2.0), "other": torch.eye(3)}
ARROWS = {"rare": [[1.0, 0.0], [0.0, 0.4]], "dense": [[0.1, 0.1]] * 2}
SHARE = torch.tensor([[0.1, 0.9], [0.2, 0.4], [0.6, 0.0]])
CURVES = {"no floor": (0.0, 10.0, 0.125), "a floor": (2, 0, 1)}
BY_QUERY = {"head 0.0": [0.8, 0.8, 0.2, 0.0], "head 0.1": [0.6, 0.4, 0.0, 0.0]}
RUNS = {"one": [3.0, 1.0] * 20, "other": [4.0, 0.0] * 20, "short": [5.0] * 3}
LEVELS, WHOLE = torch.linspace(-1, 2, 16), {"second": 3.5, "first": 14.5}
STORIES = [[True, False], [True, True, True], [False, True]]
TOLD = [  # what makes a drawing, and what it says
    (language.scaling, ({20_000: 3.0, 80_000: 2.5}, (2**18, 2.2), CURVES),
     "no floor predicts 2.10 for 262,144. a floor predicts 2.00 for"),
    (circuits.weight_by_query, (BY_QUERY, (3, 4), {"copy": (2, 4)}), "head 0.0: queries 1 to 2 0.8",
     "head 0.1: queries 1 to 2 0.50, queries 3 to 4, where notes are needed, 0.00", "copy: 2 to 4"),
    (circuits.kernels, (KERNELS,), "one: distance 0 0.70, distance 1 0.20",
     "two: distance 0 0.10, distance 1 0.80"),
    (circuits.token_tables, (TABLES,), "head: own token -2.0, others +0.5",
     "other: own token +1.0, others +0.0"),
    (circuits.arrows, (ARROWS,), "rare: 1 of 2 features have an arrow longer than 0.5",
     "dense: 0 of 2"),
    (decoding.race, (RACE,), "beam: mouse -1.2, . -1.4"),
    (since.by_rate, ({"old": {0.1: [2.0, 3.0], 0.2: [1.0, 2.0]}},), "old: 2.50 at 0.1, 1.50 at 0"),
    (since.lookers, (SHARE,), "3 blocks of 2 heads. Mean share 0.37; 2 heads give over half"),
    (since.differences, ({"wider": [-0.2, -0.1, -0.3], "deeper": [0.1, -0.1, 0.0]},),
     "wider: mean -0.200, lower loss", "deeper: mean +0.000, inside"),
    (learning.settings, ({"a": RUNS, "b": RUNS}, ("counting", 1.5), 4.0),
     "a: one at 2.00, other at 2.00, short at 5.00. b: ", "counting: 1.50"),
    (learning.shares_right, ({"one": 90, "other": 14}, 100, {"baseline": 0.86, "periods": 0.14},
      {"one": [0.8, 0.9], "other": []}),
     "100 words right: one 0.90, other 0.14. baseline: 0.86, periods: 0.14."),
    (quantized.block_of_levels, (LEVELS[[0, 3, 3, 15]], LEVELS, LEVELS[[0, 3, 3, 15]] + 0.05),
     "4 numbers on 16 levels from -1.00 to 2.00, 3 of which are used", "more than 0.0500"),
    (quantized.second_time, (WHOLE, {"best": [12.7], "others": [3.6, 4.0]}),
     "best: 12.7; others: 3.6, 4.0. Whole model: second 3.5, first 14.5"),
    (language.overtaking, ({0: 4.0, 100: 2.0}, {"table": 3.0, "best": 1.0}),
     "table: 3.00, passed between steps 0 and 100; best: 1.00, passed never"),
    (language.best_for_each, ({"small": [3.0, 2.9], "large": [4.0, 2.0]}, [10, 1000]),
     "10 tokens: small 3.00, large 4.00; best small. 1,000 tokens"),
    (language.stories_marked, ({"table": STORIES, "$step": [[True]] * 2},),
     "table: 1 of 3 stories and 71% of sentences are right. $step: 2 of 2"),
]  # fmt: skip


@pytest.mark.parametrize("make, given, said", [(*one[:2], one[2:]) for one in TOLD])
def test_it_is_drawn_and_told(make, given, said):
    assert_told(make("Claim", *given), *said)


def test_bars_of_guesses_add_up_to_the_large_model():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    made = decoding.accepted_and_missing("Guesses", ["a", "b"], p, q)
    bars = assert_told(made, "a 0.50 and 0.80, b 0.50 and 0.20").containers
    accepted, refused, missing = ([bar.get_height() for bar in c] for c in bars)
    assert [a + m for a, m in zip(accepted, missing, strict=True)] == pytest.approx(p.tolist())
    assert [a + r for a, r in zip(accepted, refused, strict=True)] == pytest.approx(q.tolist())


def test_an_adapted_matrix_is_drawn_in_the_order_of_its_thin_ones():
    W, A, B = torch.randn(5, 7), torch.randn(1, 7), torch.randn(5, 1)
    made = adapters.adapted_matrix(W, A, B, 2.0, "Claim")
    assert_told(made, "A frozen matrix, 5 × 7", "B, 5 × 1, times A, 1 × 7")
    frozen, change, total = (made.axes[i].images[0].get_array() for i in range(3))
    rows, columns = B[:, 0].argsort(), A[0].argsort()
    np.testing.assert_allclose(total, (W + 2 * B @ A)[rows][:, columns], atol=1e-6)
    np.testing.assert_allclose(frozen + change, total, atol=1e-6)
    ends = [[str(one) for one in order[[0, -1]].tolist()] for order in (columns, rows)]
    labels = made.axes[0].get_xticklabels(), made.axes[0].get_yticklabels()
    assert [[one.get_text() for one in axis] for axis in labels] == ends


def test_results_of_heads_are_parted_where_one_ends():
    x, weights, heads = torch.randn(5, 12), torch.rand(4, 5, 5).softmax(-1), torch.randn(4, 5, 3)
    made = heads_side_by_side("Claim", x, weights, heads, x, list("abcde"), asking=2)
    lines = assert_told(made, "4 heads, each with weights (5, 5) and a result (5, 3)").lines
    places = [line.get_xdata()[0] for line in lines if line.get_color() == "white"]
    assert np.diff(places) == pytest.approx([6.4 / 4] * 2)
