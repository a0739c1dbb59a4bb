"""What is taken from a model is given back, and losses are those of the model itself."""

import pytest
import torch
import torch.nn.functional as F

from tests.lessons.lesson_13.test_gemma_block import small_gemma
from transformer_lesson.lessons.lesson_13 import gemma

MISSING = "no attention in"  # names blocks that a small model does not have


@pytest.fixture
def model():
    return small_gemma()


@torch.no_grad()
def test_losses_are_those_of_the_logits(model, monkeypatch):
    monkeypatch.setattr(gemma, "RUN", 7)  # 30 labels: runs of 7, and 2
    ids = torch.randint(31, (1, 31))
    expected = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], reduction="none")[0]
    assert torch.allclose(gemma.losses(model, ids), expected, atol=1e-5)


@torch.no_grad()
def test_every_change_changes_something_and_is_taken_back(model):
    ids, other = torch.randint(31, (1, 31)), torch.randint(31, (1, 20))
    before = model(ids)
    for name, change in gemma.conditions(model, other).items():
        if name.startswith(MISSING) or name in ("as it is", "window 64"):
            continue
        with change():
            changed = model(ids)
        assert not torch.allclose(changed, before, atol=1e-6), name
        assert torch.equal(model(ids), before), name


@torch.no_grad()
def test_windows_of_its_own_change_nothing_and_none_only_what_lies_beyond(model):
    ids = torch.randint(31, (1, 31))
    before = model(ids)
    with gemma.windows(model, 5, None):
        assert torch.allclose(model(ids), before, atol=1e-5)
    with gemma.windows(model, None, None):
        changed = model(ids)
    assert torch.allclose(changed[:, :5], before[:, :5], atol=1e-5)
    assert (changed[:, 5:] - before[:, 5:]).abs().amax(-1).min() > 1e-3


def test_a_rise_is_over_the_same_runs():
    runs = {"as it is": [2.0, 3.0, 4.0], "worse": [2.0, 3.5, 4.7]}
    found = gemma.Opened({}, {"prose": runs}, [], {})
    mean, low, high = found.rise("worse", first=64)
    assert mean == pytest.approx(0.6) and low < 0.5 < 0.7 < high
    assert found.rise("worse")[0] == pytest.approx(0.4)


def test_what_is_stored_has_twenty_runs_of_64_tokens():
    for name, losses in gemma.stored().losses.items():
        assert {len(runs) for runs in losses.values()} == {gemma.TOKENS // gemma.RUN}, name
