"""Edges that are cut, the circuit that is left, and the rule that it follows."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F

from tests.parity import assert_equal, randomized
from transformer_lesson.interpretability.circuits import Edge, EdgeGraph
from transformer_lesson.lessons.lesson_11 import induction
from transformer_lesson.model.hooks import record

SMALL = replace(induction.CONFIG, vocab_size=13, d_model=12, n_heads=3, max_len=11)
IDS = torch.randint(13, (5, 7), generator=torch.Generator().manual_seed(0))


def build(**changes):
    model = randomized(induction.AttentionOnlyDecoder(SMALL, **changes)).eval()
    return model.requires_grad_(False)


def test_with_all_edges_the_graph_is_the_model_and_without_any_a_mean():
    model = build()
    graph = EdgeGraph(model, IDS)
    assert len(graph.edges) == 9 + 36 + 7
    assert_equal(graph.logits(IDS), model(IDS))
    assert_equal(graph.logits(IDS, graph.edges), model(IDS))
    assert_equal(sum(graph.sent(IDS).values()) @ model.projection.weight.T, model(IDS))
    logits = graph.logits(IDS, [])
    assert_equal(logits, logits[:1].expand_as(logits))  # every sentence gives the same
    assert (logits[:, 0] - logits[:, 1]).abs().max() > 1e-3  # but each position its own
    parts = [graph.logits(IDS)]
    for letter in "qkv":  # each is cut alone
        left = [edge for edge in graph.edges if edge != Edge("0.2", f"1.0.{letter}")]
        parts.append(graph.logits(IDS, left))
    assert all((a - b).abs().max() > 1e-6 for a, b in combinations(parts, 2))


def test_a_head_that_nobody_reads_is_a_head_that_gives_its_mean():
    model = build()
    graph = EdgeGraph(model, IDS)
    rest = [edge for edge in graph.edges if edge.sender != "0.1"]
    with record(model) as run:
        model(IDS)
    point = "decoder.0.self_attention.heads"
    mean = run[point][:, 1].mean(dim=0)

    def averaged(heads):
        heads = heads.clone()
        heads[:, 1] = mean
        return heads

    with record(model, {point: averaged}):
        expected = model(IDS)
    assert_equal(graph.logits(IDS, rest), expected)


def test_an_attribution_is_the_slope_of_the_loss():
    model = build()
    graph = EdgeGraph(model, IDS)
    labels = IDS.roll(-1, 1)
    counted = torch.ones_like(IDS, dtype=torch.bool)
    counted[:, -1] = False
    slopes = graph.attribution(IDS, labels, counted)
    assert list(slopes) == graph.edges
    step = 1e-2
    for edge in graph.edges[::7]:
        losses = []
        for strength in (1 - step, 1 + step):
            logits, _ = graph._run(IDS, {edge: torch.tensor(strength)})
            losses.append(F.cross_entropy(logits[counted], labels[counted]).item())
        assert slopes[edge] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=2e-4)


def test_a_graph_refuses_what_it_does_not_have():
    graph = EdgeGraph(build(), IDS)
    with pytest.raises(ValueError, match=r"no edge \('0.0', '0.1.q'\) in this graph"):
        graph.logits(IDS, [Edge("0.0", "0.1.q")])
    with pytest.raises(ValueError, match="ids have 8 tokens, but the means are of 7"):
        graph.logits(torch.zeros(1, 8, dtype=torch.int64))
    assert graph.logits(IDS[:1, :3]).shape == (1, 3, 13)
    with pytest.raises(ValueError, match="positions_in_stream is True"):
        EdgeGraph(build(positions_in_stream=True), IDS)
