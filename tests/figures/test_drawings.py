"""Drawings of the lessons say in words what they show, and draw it."""

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

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


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


# Attention


def test_a_kernel_with_the_extension_shows_what_a_page_needs():
    shell = InteractiveShell()
    load_ipython_extension(shell)
    view = head_view([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    data, _ = shell.display_formatter.format(view)
    assert data[MIME] == view.drawing
    assert data["text/plain"] == repr(view) and "image/png" in data


# Positions and words


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
TOLD = [  # what makes a drawing, and what it says
    (language.scaling, ({20_000: 3.0, 80_000: 2.5}, (2**18, 2.2), CURVES),
     "no floor predicts 2.10 for 262,144. a floor predicts 2.00 for"),
    (circuits.weight_by_query, (BY_QUERY, 2), "head 0.0: mean 0.45; queries 1 to 2 0.80, later 0.1",
     "head 0.1: mean 0.25; queries 1 to 2 0.50, later 0.00"),
    (circuits.kernels, (KERNELS,), "one: distance 0 0.70, distance 1 0.20",
     "two: distance 0 0.10, distance 1 0.80"),
    (circuits.token_tables, (TABLES,), "head: own token -2.0, others +0.5",
     "other: own token +1.0, others +0.0"),
    (circuits.arrows, (ARROWS,), "rare: 1 of 2 features have an arrow longer than 0.5",
     "dense: 0 of 2"),
    (decoding.race, (RACE,), "beam: mouse -1.2, . -1.4"),
    (since.by_rate, ({"old": {0.1: [2.0, 3.0], 0.2: [1.0, 2.0]}},), "old: 2.50 at 0.1, 1.50 at 0"),
    (since.lookers, (SHARE,), "3 blocks of 2 heads. Mean share 0.37; 2 heads give over half"),
]  # fmt: skip


@pytest.mark.parametrize("make, given, said", [(*one[:2], one[2:]) for one in TOLD])
def test_it_is_drawn_and_told(make, given, said):
    assert_told(make("Claim", *given), *said)


# A model that learns


def test_runs_are_told_by_their_last_losses_or_by_their_shares():
    runs = {"one": [3.0, 1.0] * 20, "other": [4.0, 0.0] * 20, "short": [5.0] * 3}
    ends = "one at 2.00, other at 2.00, short at 5.00"
    both = learning.settings("claim", {"a": runs, "b": runs}, ("counting", 1.5), highest=4.0)
    assert assert_told(both, f"a: {ends}. b: {ends}. counting: 1.50").get_ylim() == (0, 4)
    shares = learning.shares_right("claim", {"one": 90, "other": 14}, 100, ("baseline", 0.86))
    axes = assert_told(shares, "100 words right: one 0.90, other 0.14. baseline: 0.86")
    assert [line.get_xdata()[0] for line in axes.lines] == [0.86, 0.9, 0.14]


def test_a_blocks_numbers_lie_on_its_levels_and_every_trial_is_a_dot():
    levels = torch.linspace(-1, 2, 16)
    numbers = levels[torch.tensor([0, 3, 3, 15])]
    made = quantized.block_of_levels("Block", numbers, levels, numbers + 0.05)
    said = "4 numbers on 16 levels from -1.00 to 2.00, 3 of which are used"
    dots = assert_told(made, said, "more than 0.0500").lines[-1].get_ydata()
    assert np.isin(np.float32(dots), levels.numpy()).all()
    whole = {"second": 3.5, "first": 14.5}
    made = quantized.second_time("Heads", whole, {"best": [12.7], "others": [3.6, 4.0]})
    axes = assert_told(made, "best: 12.7; others: 3.6, 4.0. Whole model: second 3.5, first 14.5")
    assert [line.get_xdata()[0] for line in axes.lines[:2]] == [3.5, 14.5]
    assert [len(line.get_xdata()) for line in axes.lines[2:]] == [1, 2]


# How a model writes


def test_bars_of_guesses_add_up_to_the_large_model():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    made = decoding.accepted_and_missing("Guesses", ["a", "b"], p, q)
    bars = assert_told(made, "a 0.50 and 0.80, b 0.50 and 0.20").containers
    accepted, refused, missing = ([bar.get_height() for bar in c] for c in bars)
    assert [a + m for a, m in zip(accepted, missing, strict=True)] == pytest.approx(p.tolist())
    assert [a + r for a, r in zip(accepted, refused, strict=True)] == pytest.approx(q.tolist())


# What a language model's losses say


def test_a_run_says_where_it_passes_a_level_and_the_best_model_of_each_amount_is_ringed():
    made = language.overtaking("Claim", {0: 4.0, 100: 2.0}, {"table": 3.0, "best": 1.0})
    axes = assert_told(
        made, "table: 3.00, passed between steps 0 and 100; best: 1.00, passed never"
    )
    assert "between steps 0 and 100" in texts(axes) and "your GPT" in texts(axes)
    made = language.best_for_each("Claim", {"small": [3.0, 2.9], "large": [4.0, 2.0]}, [10, 1000])
    axes = assert_told(made, "10 tokens: small 3.00, large 4.00; best small. 1,000 tokens")
    rings = [tuple(ring.get_offsets()[0]) for ring in axes.collections]
    assert rings == [(10, 3.0), (1000, 2.0)]


def test_stories_are_rows_of_right_and_wrong_sentences_the_ones_without_a_mistake_below():
    stories = [[True, False], [True, True, True], [False, True]]
    made = language.stories_marked("Claim", {"table": stories, "$step": [[True]] * 2})
    axes = assert_told(made, "table: 1 of 3 stories and 71% of sentences are right. $step: 2 of 2")
    assert axes.get_title() == "table, right:\n1 of 3 stories,\n71% of sentences"
    rows = axes.images[0].get_array().filled(-1).tolist()
    assert rows == [[0, 1, -1], [1, 0, -1], [1, 1, 1]]


# Circuits


# Since 2017
def test_differences_have_a_dot_a_seed_and_say_what_may_be_said_of_them():
    found = {"wider": [-0.2, -0.1, -0.3], "deeper": [0.1, -0.1, 0.0]}
    made = since.differences("Claim", found)
    axes = assert_told(made, "wider: mean -0.200, lower loss", "deeper: mean +0.000, inside")
    assert texts(axes) == ["lower loss", "inside the noise"]
    dots = [line.get_xdata() for line in axes.get_lines() if line.get_marker() == "o"]
    assert [list(one) for one in dots] == list(found.values())
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row stands on top


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
