"""What is read off a head's weights is what the head does."""

import pytest
import torch

from tests.parity import assert_equal, randomized
from transformer_lesson.interpretability.head_matrices import (
    composition,
    copying_score,
    head_matrices,
)
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.hooks import record


def test_a_heads_matrices_give_its_scores_and_what_it_adds():
    attention = randomized(MultiHeadAttention(15, 3, bias=False)).eval()
    x, y = torch.randn(2, 5, 15), torch.randn(2, 7, 15)
    with record(attention) as run, torch.no_grad():
        out = attention(x, y, y)
    heads = [head_matrices(attention, i) for i in range(3)]
    for i, head in enumerate(heads):
        assert_equal(x @ head.QK @ y.mT, run["scores"][:, i])
    added = sum(run["weights"][:, i] @ y @ head.OV for i, head in enumerate(heads))
    assert_equal(added, out)
    with pytest.raises(ValueError, match="head is 3, but there are heads 0 to 2"):
        head_matrices(attention, 3)


def test_copying_is_one_anti_copying_minus_one_and_a_rotation_nothing():
    assert copying_score(torch.eye(7)) == pytest.approx(1)
    assert copying_score(-torch.eye(7)) == pytest.approx(-1)
    assert copying_score(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])) == pytest.approx(0, abs=1e-6)


def test_composition_is_one_where_all_that_is_written_is_read_and_zero_where_nothing_is():
    a, b = torch.randn(11, 1), torch.randn(11, 1)
    first = a @ b.T
    assert composition(first, b @ a.T) == pytest.approx(1)
    across = b.roll(1, 0) - b * (b.roll(1, 0) * b).sum() / b.square().sum()
    assert composition(first, across @ a.T) == pytest.approx(0, abs=1e-5)
    by_chance = [
        composition(*(torch.randn(128, 16) @ torch.randn(16, 128) for _ in "ab")) for _ in range(5)
    ]
    assert 0.07 < min(by_chance) and max(by_chance) < 0.11  # 1 / sqrt(128) = 0.088
