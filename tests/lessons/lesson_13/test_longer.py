"""The model that reads longer than it learned, and the ways to read with it."""

import json
import sys
from statistics import fmean

import pytest
import torch

from tests.parity import assert_equal
from transformer_lesson.lessons.lesson_13 import (
    longer,
    measure_longer,
    measure_sinks,
    measure_variants,
    sinks,
    variants,
)
from transformer_lesson.lessons.lesson_13.longer import read_otherwise, stored_reader
from transformer_lesson.lessons.lesson_13.sinks import seeing
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.positions import stretched_frequencies

IDS = torch.arange(100)[None] * 7 % 90


@torch.no_grad()
def test_a_copy_reads_as_the_model_does_and_through_a_window_as_with_its_mask():
    model = stored_reader()
    assert_equal(read_otherwise(model)(IDS), model(IDS))
    learned = longer.frequencies_of(model)
    assert_equal(read_otherwise(model, learned)(IDS), model(IDS))
    with seeing(model, window_mask(100, 9)):
        through = model(IDS)
    assert_equal(read_otherwise(model, window=9)(IDS), through)
    assert not torch.allclose(through, model(IDS), atol=0.1)  # the mask is gone again
    with seeing(model, causal_mask(100)):
        assert_equal(model(IDS), read_otherwise(model)(IDS))


@torch.no_grad()
def test_other_frequencies_are_other_positions():
    model = stored_reader()
    slow = read_otherwise(model, longer.frequencies_of(model) / 4)
    assert_equal(slow.decoder[0].self_attention.rotate(torch.ones(1, 9, 16))[:, 8],
                 model.decoder[0].self_attention.rotate(torch.ones(1, 3, 16))[:, 2])  # fmt: skip
    by_parts = read_otherwise(model, stretched_frequencies(16, 1e4, 64, 4.0))
    assert not torch.allclose(by_parts(IDS), model(IDS), atol=0.1)


@torch.no_grad()
def test_only_far_keys_are_turned_otherwise():
    model = stored_reader()
    own, known, every = longer.frequencies_of(model), model(IDS), range(8)
    assert_equal(longer.read_far_otherwise(model, 9, own, torch.zeros(8))(IDS), known)
    for other in (longer.stopped(model, [3], at=40), longer.interpolated_beyond(model, 40)):
        found = other(IDS)
        assert_equal(found[:, :41], known[:, :41])
        assert not torch.allclose(found[:, 41:], known[:, 41:], atol=0.1)
    assert_equal(longer.stopped(model, every, at=0)(IDS), read_otherwise(model, 0 * own)(IDS))
    assert_equal(longer.interpolated_beyond(model, 0)(IDS), read_otherwise(model, own / 4)(IDS))
    assert_equal(model(IDS), known)


@torch.no_grad()
def test_a_pair_that_stopped_stays_where_it_was():
    for block in longer.stopped(stored_reader(), [3, 6], at=63).decoder:
        (own, _), (speeds, ahead) = block.self_attention.turns
        for far in (64, 255):
            turns = torch.tensor([far, far, far, 63, far, far, 63, far])
            assert torch.allclose(speeds * far + ahead, own * turns)


def test_practice_trains_the_copy_alone():
    model = stored_reader()
    before = model.projection.weight.clone()
    copy = read_otherwise(model)
    longer.practice(copy, steps=1)
    assert torch.equal(model.projection.weight, before)
    assert not torch.equal(copy.projection.weight, before)


@pytest.mark.slow
def test_the_stored_model_is_the_one_of_the_table():
    found = longer.quarters(longer.loss_by_position(stored_reader()))
    for ours, kept in zip(found, longer.stored()["rotary"][0], strict=True):
        assert ours == pytest.approx(kept, abs=0.03)


def test_the_stored_table_is_whole_and_each_best_rate_has_neighbors():
    assert longer.quarters(torch.arange(8.0)) == [0.5, 2.5, 4.5, 6.5]
    table = longer.stored()
    assert set(longer.KINDS) < set(table)
    assert len(table) == 2 * 3 + 3 + 3 + 8 + 1 + 4 + 4 + 5 * len(longer.RATES)
    for kind in longer.KINDS:
        for fine, coarse in zip(table.pop(f"{kind}, in pieces"), table[kind], strict=True):
            assert longer.pieces(torch.tensor(fine), 4) == pytest.approx(coarse, abs=1e-3)
    assert all([len(run) for run in runs] == [4, 4, 4] for runs in table.values())
    last = {name: fmean(run[-1] for run in runs) for name, runs in table.items()}
    assert last["window 32"] < last["by parts"] < last["no positions"] < last["rotary"] - 0.3
    for way in ("unchanged", "interpolation", "raised base", "by parts"):
        rate, runs = longer.best_of(f"{way}, 30 steps")
        assert 0 < longer.RATES.index(float(rate)) < len(longer.RATES) - 1
        assert runs == table[f"{way}, 30 steps at {rate}"]


def test_each_measurement_ends_with_its_file(monkeypatch, tmp_path):
    monkeypatch.setattr(measure_longer, "SEEDS", ())
    monkeypatch.setattr(longer, "TABLE", tmp_path / "longer.json")
    measure_longer.main()
    assert json.loads(longer.TABLE.read_text()) == {}
    monkeypatch.setattr(measure_variants, "STORED", tmp_path / "variants.json")
    monkeypatch.setattr(
        measure_variants, "measured", lambda name: variants.Stored({0.1: [2.0]}, [])
    )
    monkeypatch.setattr(sys, "argv", ["measure_variants", "Muon"])
    measure_variants.main()
    assert json.loads(measure_variants.STORED.read_text()) == {"Muon": [{"0.1": [2.0]}, []]}
    monkeypatch.setattr(measure_sinks, "weights", lambda name: tmp_path)
    monkeypatch.setattr(measure_sinks, "from_pretrained", lambda path: torch.nn.Identity())
    monkeypatch.setattr(measure_sinks.llama_cpp, "read_tokenizer", lambda path: None)
    monkeypatch.setattr(sinks, "passages", lambda tokenizer: ())
    monkeypatch.setattr(sinks, "STORED", tmp_path / "sinks.json")
    measure_sinks.main()
    assert json.loads(sinks.STORED.read_text()) == []


def test_the_stored_passages_are_whole():
    for one in sinks.stored():
        assert 0 < one.firsts < one.cut < 1
        assert len(one.losses) == 5 and sinks.ALONE in one.losses
    assert len(sinks.stored()) == sinks.TEXTS
