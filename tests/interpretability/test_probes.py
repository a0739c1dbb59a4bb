"""A probe reads what is there, and no more."""

import pytest
import torch

from transformer_lesson.interpretability.probes import fit_probe, probe_accuracy


def examples(n, gap):
    generator = torch.Generator().manual_seed(0)
    yes = torch.rand(n, generator=generator) < 0.4
    vectors = torch.randn(n, 7, generator=generator)
    vectors[:, 3] += torch.where(yes, gap, 0.0) + 5.0  # an offset, for which it needs its bias
    return vectors, yes


def test_a_probe_reads_what_is_there_and_nothing_out_of_noise():
    vectors, yes = examples(4000, gap=0.0)
    weights = fit_probe(vectors[:2000], yes[:2000])
    share = yes[2000:].float().mean().item()
    assert probe_accuracy(weights, vectors[2000:], yes[2000:]) < max(share, 1 - share) + 0.03
    vectors, yes = examples(400, gap=6.0)
    weights = fit_probe(vectors[:200], yes[:200])
    assert probe_accuracy(weights, vectors[200:], yes[200:]) > 0.97
    assert weights[:-1].abs().argmax() == 3
    flipped = probe_accuracy(weights, vectors[200:], ~yes[200:])
    assert flipped == pytest.approx(1 - probe_accuracy(weights, vectors[200:], yes[200:]))


def test_large_weights_cost_and_one_class_alone_cannot_be_told_apart():
    vectors, yes = examples(50, gap=3.0)
    sizes = [fit_probe(vectors, yes, ridge).norm() for ridge in (0.0, 0.1, 10.0)]
    assert sizes[0] > sizes[1] > sizes[2]
    with pytest.raises(ValueError, match="all 5 examples have the same class"):
        fit_probe(torch.randn(5, 7), torch.ones(5, dtype=torch.bool))
