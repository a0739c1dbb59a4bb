"""A router keeps the k largest probabilities and says how evenly the tokens spread."""

import pytest
import torch

from tests.parity import assert_equal
from transformer_lesson.model.experts import route


def test_by_hand_two_tokens_three_experts():
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]]).log1p()  # softmax: (3, 2, 1) / 6, ...
    weights, balance = route(torch.eye(2), logits, k=1)
    assert_equal(weights, torch.tensor([[3 / 6, 0, 0], [0, 4 / 7, 0]]))
    mean = [(3 / 6 + 1 / 7) / 2, (2 / 6 + 4 / 7) / 2]
    assert_equal(balance, torch.tensor(3 * (mean[0] / 2 + mean[1] / 2)))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_token_keeps_its_k_largest_probabilities(k):
    x, W = torch.randn(11, 7), torch.randn(7, 5)
    weights, _ = route(x, W, k)
    best, places = (x @ W).softmax(-1).topk(k)
    assert_equal(weights.gather(1, places), best)
    assert ((weights > 0).sum(1) == k).all()


def test_even_is_1_and_one_expert_for_all_is_the_number_of_experts():
    even = torch.eye(4) * 50
    assert route(torch.eye(4), even, 1)[1].item() == pytest.approx(1)
    alone = torch.zeros(4, 4).index_fill(1, torch.tensor(2), 50.0)
    assert route(torch.eye(4), alone, 1)[1].item() == pytest.approx(4)
    weights, balance = route(torch.ones(3, 2), torch.zeros(2, 6), 2)  # of equals the first
    assert (weights > 0).int().tolist() == [[1, 1, 0, 0, 0, 0]] * 3
    assert balance.item() == pytest.approx(1)  # each of the two has half of the choices


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
