"""The gradients by hand are autograd's, the step by hand is PyTorch's."""

import math

import pytest
import torch

from transformer_lesson.lessons.lesson_08 import backward
from transformer_lesson.model.norm import layer_norm


def by_autograd(forward, tensors, G):
    """Return autograd's gradients of some tensors, where G is that of the result."""
    leaves = [one.detach().clone().requires_grad_() for one in tensors]
    return torch.autograd.grad(forward(*leaves), leaves, G)


def normal(*shape):
    return torch.randn(*shape, generator=torch.manual_seed(3), dtype=torch.float64)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_back_through_a_matrix():
    H, W_L, G = normal(2, 3, 5), normal(5, 7), normal(2, 3, 7)
    assert_same(backward.projection_gradient(H, W_L, G), by_autograd(torch.matmul, (H, W_L), G))


def test_back_through_a_norm():
    x, gamma, G = normal(2, 3, 5), normal(5), normal(2, 3, 5) ** 3
    expected = by_autograd(lambda *of: layer_norm(*of, 0.1), (x, gamma, 0 * gamma), G)
    assert_same(backward.layer_norm_gradient(x, gamma, 0.1, G), expected)


@pytest.mark.parametrize("masked", [False, True])
def test_back_through_a_head(masked):
    Q, K, V, G = normal(4, 2, 3, 5)

    def weights_of(Q, K):
        scores = Q @ K.mT / math.sqrt(5)
        future = torch.ones(3, 3).triu(1).bool() & masked
        return scores.masked_fill(future, -math.inf).softmax(-1)

    expected = by_autograd(lambda Q, K, V: weights_of(Q, K) @ V, (Q, K, V), G)
    assert_same(backward.head_gradient(Q, K, V, weights_of(Q, K), G), expected)


def test_a_step_is_pytorchs():
    weight = normal(3, 5).requires_grad_()
    optimizer = torch.optim.Adam([weight], lr=0.1, betas=(0.9, 0.98), eps=1e-9)
    w, m, v = weight.detach().clone(), torch.zeros(3, 5), torch.zeros(3, 5)
    for t, size in enumerate((1.0, 0.001, 1000.0, 0.0), 1):
        weight.grad = size * normal(3, 5)
        optimizer.step()
        w, m, v = backward.adam_step(w, weight.grad, m.double(), v.double(), t, 0.1)
        torch.testing.assert_close(w, weight.detach())
