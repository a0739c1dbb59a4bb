"""A router keeps the k largest probabilities and says how evenly the tokens spread."""

import pytest
import torch

from transformer_lesson.model.experts import route


def test_the_balance_loss_lowers_the_favorite():
    x, W = torch.randn(13, 7), torch.randn(7, 5, requires_grad=True)
    weights, balance = route(x, W, 1)
    balance.backward()
    favorite = int((weights > 0).sum(0).argmax())
    lower = x @ (W - 0.1 * W.grad)
    before, after = ((x @ W).softmax(-1), lower.softmax(-1))
    assert after.mean(0)[favorite] < before.mean(0)[favorite]


@pytest.mark.parametrize("k", [0, 6])
def test_a_number_of_experts_that_there_is_not(k):
    with pytest.raises(ValueError, match=f"k is {k}, but a token passes through 1 to 5 experts"):
        route(torch.zeros(2, 3), torch.zeros(3, 5), k)
