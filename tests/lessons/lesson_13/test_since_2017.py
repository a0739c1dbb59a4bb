"""The models of 2017 and 2026 have one size, and the runs that compare them are what is stored."""

import pytest
import torch
from torch import nn

from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.since_2017 import (
    Setting,
    ladder,
    run_setting,
    stored_ladder,
)
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer


def test_every_rung_has_the_same_size_and_one_change_more():
    rungs = ladder()
    sizes = [count_parameters(DecoderOnlyTransformer(config)) for config in rungs.values()]
    assert max(sizes) < 1.004 * min(sizes)
    assert list(rungs) == ["2017", *(f"+ {name}" for name in since_2017.CHANGES)]
    last = list(rungs.values())[-1]
    for choices in since_2017.CHANGES.values():
        for name, value in choices.items():
            assert getattr(last, name) == value
            assert getattr(rungs["2017"], name) != value


@pytest.mark.parametrize("change", ["SwiGLU", "pre-norm"])
def test_no_other_width_comes_nearer_to_the_size(change):
    config = since_2017.replace(since_2017.paper_config(), **since_2017.CHANGES[change])
    made = since_2017.same_size(config, 90_000)

    def away(d_ff):
        return abs(
            count_parameters(DecoderOnlyTransformer(since_2017.replace(made, d_ff=d_ff))) - 90_000
        )

    assert away(made.d_ff) <= min(away(made.d_ff - 1), away(made.d_ff + 1))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([2.0, 2.1, 2.2], [1.8, 1.91, 2.01], "lower loss"),
        ([1.8, 1.91, 2.01], [2.0, 2.1, 2.2], "higher loss"),
        ([2.0, 2.1, 2.2], [1.9, 2.11, 2.1], "inside the noise"),  # signs differ
        ([2.0, 2.0, 2.0], [1.7, 1.9, 1.99], "inside the noise"),  # spread as large as the mean
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0], "inside the noise"),
    ],
)
def test_three_seeds_must_agree_by_more_than_they_differ(before, after, says):
    assert since_2017.verdict(before, after).says == says
    told = str(since_2017.verdict([2.0, 2.0], [1.8, 1.7]))
    assert told == "-0.250 (-0.300 to -0.200): lower loss"


def test_weights_begin_as_asked():
    model = nn.Sequential(nn.Linear(300, 500), nn.LayerNorm(500))
    since_2017.initialize(model, "small")
    assert abs(model[0].weight.std() - 0.02) < 0.001
    since_2017.initialize(model, "xavier")
    limit = (6 / 800) ** 0.5
    assert 0.99 * limit < model[0].weight.abs().max() <= limit
    assert (model[1].weight == 1).all()
    with pytest.raises(ValueError, match="how is 'large'"):
        since_2017.initialize(model, "large")


@pytest.mark.slow
def test_a_run_is_repeated_to_the_digit():
    torch.set_num_threads(1)
    seen = []
    first = run_setting(Setting("pre", 0, "small"), 1, seen.append, steps=3)
    assert first == run_setting(Setting("pre", 0, "small"), 1, steps=3) == [r.loss for r in seen]
    assert run_setting(Setting("pre", 0, "small"), 1, steps=2) == first[:2]
    assert len(first) == 3 and first != run_setting(Setting("pre", 0, "small"), 2, steps=3)


def test_a_run_that_diverges_returns_what_it_has(monkeypatch):
    hot = since_2017.replace(since_2017.GRID_TRAINING, learning_rate=1e30)
    monkeypatch.setattr(since_2017, "GRID_TRAINING", hot)
    assert 1 <= len(run_setting(Setting("pre", 0, "xavier"), 0, steps=30)) < 30


@pytest.mark.slow
def test_models_are_compared_on_the_same_batches():
    names, reports = list(ladder())[:1], []
    configs = {name: ladder()[names[0]] for name in ("one", "other")}
    histories = since_2017.compare(configs, [3], 2, lambda *report: reports.append(report[:2]))
    assert histories["one"][0].losses == histories["other"][0].losses
    assert reports == [("one", 3)] * 2 + [("other", 3)] * 2


def test_the_stored_curves_are_whole_and_means():
    n_points = since_2017.GRID_TRAINING.steps // since_2017.GRID_EVERY
    assert len(since_2017.stored_grid()) == 12
    for runs in since_2017.stored_grid().values():
        assert [len(run) for run in runs] == [n_points] * 3
    assert list(stored_ladder()) == list(ladder())
    assert {len(run) for runs in stored_ladder().values() for run in runs} == {15}
    assert since_2017.thinned([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0], every=5) == [3.0, 7.5]
