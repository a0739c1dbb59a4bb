"""What is taken from a model is given back, and losses are those of the model itself."""

import pytest
import torch
import torch.nn.functional as F

from tests.lessons.lesson_13.test_gemma_block import small_gemma
from transformer_lesson.lessons.lesson_13 import gemma
from transformer_lesson.model.hooks import record


@pytest.fixture
def model():
    return small_gemma()


@torch.no_grad()
def test_losses_are_those_of_the_logits_at_every_fourth_token(model, monkeypatch):
    monkeypatch.setattr(gemma, "RUN", 5)  # 7 labels: a run of 5, and 2
    ids = torch.randint(31, (1, 31))
    expected = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], reduction="none")[0]
    assert torch.allclose(gemma.losses(model, ids), expected[3::4], atol=1e-5)
    assert torch.allclose(gemma.losses(model, ids, first=3), expected[2::4], atol=1e-5)


@torch.no_grad()
def test_every_change_changes_something_and_is_taken_back(model):
    ids, other = torch.randint(31, (1, 31)), torch.randint(31, (1, 20))
    before = model(ids)
    for name, change in gemma.conditions(model, other).items():
        with change():
            changed = model(ids)
        assert torch.allclose(changed, before, atol=1e-6) == (name == gemma.AS_IT_IS), name
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


def test_a_rise_is_over_texts_on_the_same_runs():
    losses = {gemma.AS_IT_IS: [[2.0, 3.0], [2.0, 4.0]], "worse": [[2.0, 3.5], [2.2, 4.7]]}
    found = gemma.Opened(losses | {"short": [[2.5], [2.5]]}, [], {}, {})
    mean, low, high = found.rise("worse", first=gemma.RUN)
    assert mean == pytest.approx(0.6) and low < 0.5 < 0.7 < high
    assert found.rise("worse")[0] == pytest.approx(0.35)
    assert found.rise("short") == pytest.approx((0.5, 0.5, 0.5))
    assert found.table("short") == f"{'short':25}  +0.50  (+0.50 to +0.50)"


def test_what_is_stored_has_all_runs_of_all_texts_and_a_score_for_each_head():
    found = gemma.stored()
    for name, texts in found.losses.items():
        runs = {len(text) for text in texts}
        assert len(texts) == len(found.losses[gemma.AS_IT_IS]) >= 4, name
        assert runs in ({gemma.TOKENS // gemma.RUN}, {gemma.SHORT // gemma.RUN}), name
    assert torch.tensor(found.scores).shape == (18, 4)
    assert {len(losses) for losses in found.copies.values()} == {gemma.COPIES}


@torch.no_grad()
def test_heads_that_are_taken_out_change_the_logits_and_come_back(model):
    ids = torch.randint(31, (1, 20))
    before = model(ids)
    with gemma.without_heads(model, [(0, 1), (2, 3)]):
        changed = model(ids)
    assert not torch.allclose(changed, before, atol=1e-4)
    assert torch.equal(model(ids), before)


@torch.no_grad()
def test_a_narrow_block_sees_only_its_window(model):
    ids = torch.randint(31, (1, 20))
    with gemma.narrowed(model, (2,), 3), record(model) as run:
        model(ids)
    weights = run["decoder.2.self_attention.weights"]
    assert (weights > 0).sum(-1).max() == 3
    with gemma.narrowed(model, (2,), 3, sinks=1), record(model) as run:
        model(ids)
    seen = run["decoder.2.self_attention.weights"] > 0
    assert seen[..., 0].all() and (seen[..., 1:].sum(-1).max(), seen.sum(-1).max()) == (3, 4)


@torch.no_grad()
def test_a_heads_mean_takes_its_place_at_every_token_and_leaves_the_first_out(model):
    ids = torch.randint(31, (1, 20))
    means = gemma.head_means(model, ids)
    with record(model) as run:
        model(ids)
    heads = run["decoder.2.self_attention.heads"]
    assert torch.allclose(means[2, 3], heads[0, 3, 1:].mean(0), atol=1e-5)
    with gemma.without_heads(model, [(2, 3)], means), record(model) as run:
        model(ids)
    changed = run["decoder.2.self_attention.heads"]
    assert torch.allclose(changed[0, 3], means[2, 3].expand(20, -1), atol=1e-5)
    assert torch.allclose(changed[0, :3], heads[0, :3], atol=1e-5)


@torch.no_grad()
def test_a_head_has_a_score_of_its_weights_without_bos(model, monkeypatch):
    monkeypatch.setattr(gemma, "PERIOD", 9)
    ids = torch.randint(31, (2, 19))
    scores = gemma.head_scores(model, ids)
    assert torch.equal(scores[:2], torch.zeros(2, 4))  # their windows end before what was copied
    with record(model) as run:
        model(ids)
    what_followed = run["decoder.2.self_attention.weights"][:, :, 10:18, 2:10]
    expected = what_followed.diagonal(dim1=-2, dim2=-1).mean(dim=(0, 2))
    assert torch.allclose(scores[2], expected) and expected.min() > 0


@torch.no_grad()
def test_only_far_blocks_see_the_first_token_again(model):
    ids = torch.randint(31, (1, 31))
    with gemma.windows(model, 5, 5, far_sinks=1), record(model) as run:
        model(ids)
    for i, own in enumerate(model.config.windows):
        at_first = run[f"decoder.{i}.self_attention.weights"][..., 10:, 0]
        assert (at_first == 0).all() == (own is not None)


@torch.no_grad()
def test_a_constant_for_the_first_token_alone_is_its_own_size(model):
    ids, norms = torch.randint(31, (1, 31)), gemma.qk_norms(model)[:1]
    before = model(ids)
    seen = []
    norms[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with gemma.constant(model, norms, ids, apart=True):
        given, x = seen[0], torch.randn(1, 4, 7, seen[0].size(-1))
        sizes = given.square().mean(-1).sqrt()
        changed = norms[0].forward(x)
    expected = torch.cat(
        [x[..., :1, :] / sizes[..., 0].mean(), x[..., 1:, :] / sizes[..., 1:].mean()], -2
    )
    assert torch.allclose(changed, expected * norms[0].weight, atol=1e-5)
    assert torch.equal(model(ids), before)
