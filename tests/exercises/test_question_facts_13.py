"""What the questions of lesson 13 call right is what the package and the stored curves do."""

from statistics import fmean

import pytest
import torch

from tests.exercises.test_question_facts import right
from transformer_lesson import DecoderOnlyTransformer, ModelConfig
from transformer_lesson.experiments.since_2017 import Setting, stored_grid, stored_ladder
from transformer_lesson.model.feed_forward import FeedForward, GatedFeedForward
from transformer_lesson.model.norm import layer_norm, rms_norm
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.positions import apply_rotary


def test_norms():
    x, one, zero = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3), torch.zeros(3)
    torch.testing.assert_close(layer_norm(x + 100, one, zero), layer_norm(x, one, zero))
    torch.testing.assert_close(rms_norm(x + 100, one), one, atol=0.02, rtol=0)
    assert "close to 1" in right("13.shifted")


def test_sizes():
    assert right("13.same_numbers").startswith("1365")
    sizes = dict(vocab_size=9, d_model=512, n_heads=8, n_layers=1, max_len=9)
    plain = count_parameters(FeedForward(ModelConfig(d_ff=2048, **sizes))) - 2048 - 512
    gated = count_parameters(GatedFeedForward(ModelConfig(d_ff=1365, **sizes)))
    assert plain - gated == 512  # but for one row
    assert right("13.cache").startswith("A quarter") and 8 / 32 == 1 / 4


def test_a_score_moves_on_unchanged():
    q, k = torch.randn(2, 1, 16)
    scores = [
        apply_rotary(q, torch.tensor([3 + on])) @ apply_rotary(k, torch.tensor([1 + on])).T
        for on in (0, 100)
    ]
    torch.testing.assert_close(*scores, atol=1e-3, rtol=1e-3)
    assert right("13.moved_on").startswith("0.8")


@pytest.mark.slow
@torch.no_grad()
def test_reach():
    sizes = dict(vocab_size=30, d_model=32, n_heads=2, n_layers=3, d_ff=64, max_len=20)
    model = DecoderOnlyTransformer(ModelConfig(attention_window=4, **sizes)).eval()
    ids = torch.arange(20)[None]
    moved = []
    for t in range(20):
        changed = ids.clone()
        changed[0, t] = 29
        moved.append(bool((model(changed)[0, -1] - model(ids)[0, -1]).abs().max() > 1e-5))
    assert sum(moved[:-1]) == 9 and right("13.reach").startswith("9")


def test_stored_runs():
    ends = [fmean(run[-1] for run in runs) for runs in stored_ladder().values()]
    falls = [before - after for before, after in zip(ends, ends[1:], strict=False)]
    best = max(range(5), key=lambda i: falls[i])
    assert list(stored_ladder())[best + 1] == "+ rotary" and falls[best] > 0.15
    assert sorted(falls)[-2] < 0.03 and right("13.which_change").startswith("Rotary")
    stuck = [run[-1] for run in stored_grid()[Setting("post", 0, "xavier")]]
    assert all(abs(loss - 3.24) < 0.2 for loss in stuck)  # the manual's letter frequencies
    assert "stays there" in right("13.six_layers")
