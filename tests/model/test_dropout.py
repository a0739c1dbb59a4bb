"""Dropout zeroes the right share, keeps the expected value, and draws independent numbers."""

import pytest
import torch

from tests.parity import small_config
from transformer_lesson.model.fast import Dropout, keep_mask
from transformer_lesson.model.feed_forward import FeedForward

SHARES = [0.0, 0.1, 0.25, 0.5, 0.9]


@pytest.mark.parametrize("p", SHARES)
def test_the_share_of_zeros_is_p(p):
    n = 400_000
    dropped = 1 - keep_mask((n,), p).double().mean().item()
    assert abs(dropped - p) <= 5 * (p * (1 - p) / n) ** 0.5 + 1 / 65536


@pytest.mark.parametrize("lane", range(4))
def test_each_of_the_four_entries_of_a_draw_is_fair_and_independent(lane):
    """One 64-bit draw serves four entries: no lane may be biased or repeat another."""
    keep = keep_mask((100_000, 4), 0.5).double()
    others = keep[:, [i for i in range(4) if i != lane]]
    assert abs(keep[:, lane].mean().item() - 0.5) < 0.01
    agreement = (keep[:, [lane]] == others).double().mean(dim=0)
    assert (agreement - 0.5).abs().max() < 0.01
    assert abs((keep[1:, lane] == keep[:-1, lane]).double().mean().item() - 0.5) < 0.01


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5, 7), (2, 3, 11), (0,)])
def test_the_mask_has_the_shape_asked_for(shape):
    assert keep_mask(shape, 0.5).shape == shape and keep_mask(shape, 0.5).dtype == torch.bool


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_stays_is_scaled_and_the_gradient_too(dtype):
    x = torch.ones(200, 50, dtype=dtype, requires_grad=True)
    y = Dropout(0.2).train()(x)
    assert y.dtype == dtype
    assert set(y.detach().unique().tolist()) == {0.0, torch.tensor(1.25, dtype=dtype).item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert abs(y.double().mean().item() - 1) < 0.03


def test_nothing_is_dropped_in_evaluation_or_at_p_0():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0).train()(x) is x


def test_the_same_seed_drops_the_same():
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(keep_mask((50,), 0.5))
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("p", [-0.1, 1.0, 2.0, float("nan")])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match=rf"p is {p}, but it must be a probability in \[0, 1\)"):
        Dropout(p)


def test_the_feed_forward_network_drops_its_hidden_layer_when_asked():
    torch.manual_seed(0)
    drops, calm = (FeedForward(small_config(feed_forward_dropout=p)).train() for p in (0.5, 0.0))
    x = torch.randn(2, 3, 12)
    assert not torch.equal(drops(x), drops(x)) and torch.equal(calm(x), calm(x))
    assert torch.equal(drops.eval()(x), drops(x))
