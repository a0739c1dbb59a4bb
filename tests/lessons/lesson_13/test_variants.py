"""Each change does what it says, alone, and what is stored is whole."""

from statistics import fmean

import pytest
import torch
import torch.nn.functional as F

from tests.parity import assert_equal
from transformer_lesson.lessons.lesson_13 import variants
from transformer_lesson.lessons.lesson_13.since_2017 import LAST, at_their_best, ladder
from transformer_lesson.lessons.lesson_13.variants import (
    CHANGES,
    RATES,
    Recipe,
    build,
    optimizers,
    rate_at,
)
from transformer_lesson.model.experts import route
from transformer_lesson.model.hooks import record
from transformer_lesson.model.linear_attention import linear_attention_step

IDS = torch.arange(40)[None] * 7 % 90


@pytest.fixture(scope="module")
def base():
    return build(Recipe(), seed=3).eval()


@pytest.mark.parametrize("change", [*CHANGES, "sinusoids"])
def test_all_models_begin_with_the_same_weights_and_predict(base, change):
    model = build(Recipe(change), seed=3).eval()
    assert torch.equal(model.embedding.weight, base.embedding.weight)
    for ours, theirs in zip(model.decoder, base.decoder, strict=True):
        assert torch.equal(ours.self_attention.W_V.weight, theirs.self_attention.W_V.weight)
    with torch.no_grad():
        same = torch.allclose(model(IDS), base(IDS), atol=1e-6)
    assert same == (change == "nothing")


def test_a_recipe_may_be_any_step_of_the_ladder():
    assert build(Recipe(rung="2017"), seed=3).config == ladder()["2017"]


@pytest.mark.parametrize("k", [1, 2])
@torch.no_grad()
def test_experts_add_what_the_chosen_ones_say(k):
    layer, x = variants.Experts(12, 7, k), torch.randn(2, 5, 12)
    weights, _ = route(x.flatten(0, 1), layer.W_router, k)
    expected = torch.zeros(10, 12)
    for i, token in enumerate(x.flatten(0, 1)):
        for e in range(variants.N_EXPERTS):
            hidden = F.silu(token @ layer.W_gate[e]) * (token @ layer.W_up[e])
            expected[i] += weights[i, e] * (hidden @ layer.W_down[e])
    assert_equal(layer(x), expected.view(2, 5, 12))
    assert layer.share.sum().item() == pytest.approx(1)


@torch.no_grad()
def test_a_linear_layer_is_its_steps(base):
    model = build(Recipe("linear attention"), seed=3).eval()
    with record(model) as run:
        model(IDS)
    read = {n: run[f"decoder.0.self_attention.{n}"][0] for n in ("queries", "keys", "values")}
    K, V = (read[name].repeat_interleave(2, dim=0) for name in ("keys", "values"))
    for head in range(4):
        state = torch.zeros(16, 16)
        for t in range(40):
            output, state = linear_attention_step(
                state, read["queries"][head, t], K[head, t], V[head, t]
            )
            ours = run["decoder.0.self_attention.heads"][0, head, t]
            assert_equal(ours, F.rms_norm(output, (16,)))


def test_the_rate_rises_stays_and_falls():
    rates = [rate_at(step, Recipe(steps=100, schedule="wsd")) for step in range(1, 101)]
    assert rates[:2] == [1 / 20, 2 / 20] and rates[19:80] == [1.0] * 61
    assert rates[80:82] == [20 / 21, 19 / 21] and rates[-1] == 1 / 21
    assert rate_at(90, Recipe(steps=100, schedule="constant")) == 1
    assert rate_at(100, Recipe(steps=100)) < 0.11


def test_muon_moves_the_matrices_of_the_blocks_and_nothing_else(base):
    adamw, muon = optimizers(base, Recipe(muon=0.02))
    moved = [id(w) for group in muon.param_groups for w in group["params"]]
    matrices = [w for w in base.decoder.parameters() if w.dim() == 2]
    assert moved == [id(w) for w in matrices] and len(matrices) == 14
    others = [id(w) for group in adamw.param_groups for w in group["params"]]
    assert sorted(moved + others) == sorted(map(id, base.parameters()))
    assert len(optimizers(base, Recipe())) == 1


@pytest.mark.slow
def test_the_balance_is_added_to_a_loss():
    batch = variants.since_2017.text().validation[0]

    def loss(balance):
        recipe = Recipe("8 experts, top 1", balance=balance)
        return variants.loss_of(build(recipe, seed=3), batch, recipe).item()

    assert loss(1.0) - loss(0.0) > 2  # two layers


@pytest.mark.slow
def test_a_run_is_repeated_to_the_digit():
    torch.set_num_threads(1)
    recipe = Recipe("8 experts, top 2", steps=2, muon=0.02)
    one, other = (variants.trained(recipe, seed=1).projection.weight for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, variants.trained(recipe, seed=2).projection.weight)


@pytest.mark.slow
def test_a_stored_run_comes_out_again():
    rotary = variants.stored()["+ rotary"]
    again = variants.trained(Recipe(rung="+ rotary", rate=rotary.best_rate()), seed=0)
    assert variants.validation_loss(again) == pytest.approx(rotary.best()[0], abs=0.05)


def test_what_is_stored_is_whole_and_each_best_rate_has_neighbors():
    runs = variants.stored()
    assert list(runs) == list(variants.RECIPES) and [*ladder()] == [*runs][:7]
    for name, kept in runs.items():
        assert tuple(kept.losses) == variants.rates_of(name)
        many = 10 if name in ladder() or name == "Muon" else 3
        wanted = [many if rate == kept.best_rate() else 3 for rate in kept.losses]
        assert [*map(len, kept.losses.values())] == wanted
        if len(kept.losses) > 1:
            assert 0 < [*kept.losses].index(kept.best_rate()) < len(kept.losses) - 1, name
        shares = [share for seed in kept.shares for share in seed]
        assert len(shares) == 6 * ("experts" in name)
        assert all(sum(share) == pytest.approx(1, abs=0.01) for share in shares)


def test_differences_are_those_of_the_best_rates():
    runs = variants.stored()
    old, new = runs[LAST], runs["linear attention"]
    assert [*old.losses] == [*RATES]
    grids = [torch.tensor([v[:3] for v in one.losses.values()]).double() for one in (old, new)]
    found, edge = at_their_best(*grids)
    assert variants.differences(LAST, "linear attention") == pytest.approx(found.tolist())
    assert not edge and old.best() == min(old.losses.values(), key=lambda some: fmean(some[:3]))
