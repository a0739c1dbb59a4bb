"""Filters keep what they should, and strategies choose as their distribution says."""

import dataclasses
import math

import pytest
import torch

from transformer_lesson import generation
from transformer_lesson.generation import Sample, length_normalized, top_k_filter, top_p_filter


@pytest.mark.parametrize("filtered", [lambda x: top_k_filter(x, 3), lambda x: top_p_filter(x, 0.6)])
def test_filters_work_on_any_leading_axes_and_leave_their_input(filtered):
    logits = torch.randn(2, 3, 7)
    before = logits.clone()
    rows = torch.stack([filtered(row) for row in logits.flatten(0, 1)]).view(2, 3, 7)
    assert torch.equal(filtered(logits), rows)
    assert torch.equal(filtered(logits)[0], filtered(logits[0]))
    assert torch.equal(logits, before)


NAN, ZEROS = math.nan, torch.zeros(3)
BAD = [
    (lambda k: top_k_filter(ZEROS, k), "k", (0, -1, 1.5, True, None)),
    (lambda p: top_p_filter(ZEROS, p), "p", (0, 0.0, -0.1, 1.01, NAN, "0.5")),
    (lambda t: Sample(temperature=t), "temperature", (0, -1.0, NAN, math.inf)),
    (lambda k: Sample(top_k=k), "top_k", (0, 2.5)),
    (lambda p: Sample(top_p=p), "top_p", (0.0, 1.5)),
    (lambda seed: Sample(seed=seed), "seed", (-1, 0.5)),
    (lambda width: generation.Beam(width=width), "width", (0, 2.0, True)),
    (lambda penalty: generation.Beam(length_penalty=penalty), "length_penalty", (-0.1, NAN)),
]


@pytest.mark.parametrize(
    ("make", "name", "value"), [(make, name, v) for make, name, values in BAD for v in values]
)
def test_filters_and_strategies_refuse_impossible_values(make, name, value, unchecked):
    with pytest.raises(ValueError, match=f"^{name} is '?{value}'?, but it must be "):
        make(value)


@pytest.mark.parametrize("strategy", [generation.Greedy(), Sample(), generation.Beam()])
def test_strategies_are_frozen_and_compare_by_value(strategy):
    assert strategy == type(strategy)()
    with pytest.raises(dataclasses.FrozenInstanceError):
        strategy.width = 3


def test_temperature_sharpens_and_flattens_before_the_filters():
    logits = torch.tensor([1.0, 0.0])
    likeliest = [Sample(temperature=t).probabilities(logits)[0].item() for t in (0.01, 1.0, 100.0)]
    assert likeliest == pytest.approx([1.0, 0.7311, 0.5025], abs=1e-4)
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    sample = Sample(temperature=4.0, top_k=3, top_p=0.5)
    expected = top_p_filter(top_k_filter(logits / 4.0, 3), 0.5).softmax(0)
    assert torch.equal(sample.probabilities(logits), expected)
    assert (expected > 0).sum() == 2  # at temperature 1 it would be the first token alone
    assert (top_p_filter(logits, 0.5).isfinite()).sum() == 1


@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 1e-39, 1e-45, 5e-324])
def test_the_coldest_sample_takes_the_likeliest_token_and_shares_among_equals(temperature):
    cold = Sample(temperature)
    logits = torch.tensor([[-math.inf, -5.0, 3.0, 2.0], [-math.inf, 900.0, -900.0, 900.0]])
    assert cold.probabilities(logits).tolist() == [[0, 0, 1, 0], [0, 0.5, 0, 0.5]]
    far_apart = torch.tensor([[0.0, 1.0], [3e38, 0.0]])
    assert cold.probabilities(far_apart).tolist() == [[0, 1], [1, 0]]
    for uniform, token in ((0.0, 1), (0.49, 1), (0.5, 3), (0.999, 3)):
        assert cold.choose(logits, torch.tensor([uniform, uniform])).tolist() == [2, token]


def test_uniforms_of_a_row_depend_on_seed_and_row_alone():
    few, many = Sample(seed=7).uniforms(2, 5), Sample(seed=7).uniforms(4, 5)
    assert torch.equal(many[:, :2], few) and many.dtype == torch.float32
    assert torch.equal(Sample(seed=7).uniforms(4, 8)[:5], many)
    assert 0 <= many.min() and many.max() < 1
    seeds = [*range(20), 2**32, 2**32 + 1, 2**64, 10**50]
    rows = torch.cat([Sample(seed=seed).uniforms(20, 3) for seed in seeds], dim=1)
    assert len(set(map(tuple, rows.T.tolist()))) == 20 * len(seeds)


def test_length_normalization_as_in_gnmt():
    assert length_normalized(-6.0, 7, 0.0) == -6.0
    assert length_normalized(-6.0, 7, 1.0) == -3.0
    assert length_normalized(-6.0, 1, 0.6) == -6.0
    assert length_normalized(torch.tensor([-8.0]), 19, 0.5).tolist() == [-4.0]
