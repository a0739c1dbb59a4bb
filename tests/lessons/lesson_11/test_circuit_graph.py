"""Edges cut in the page: every number is what the package's graph gives with the others alone."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from tests.explorables.shown import Shown, assert_agree, assert_refused
from tests.parity import randomized
from transformer_lesson.explorables import CircuitGraph
from transformer_lesson.interpretability.circuits import Edge, EdgeGraph
from transformer_lesson.lessons.lesson_11 import circuit_graph
from transformer_lesson.lessons.lesson_11.induction import (
    CONFIG,
    AttentionOnlyDecoder,
    held_out_batch,
    repeated_part,
)
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import Batch

PARTS = {"q": "queries", "k": "keys", "v": "values"}
NOTES = [Edge("0.0", "1.0.k"), Edge("0.1", "1.1.k")]


def small(n_layers: int = 2, n_heads: int = 2, seed: int = 1):
    """A model of a few numbers, and sequences of period 5."""
    torch.manual_seed(seed)
    config = replace(CONFIG, vocab_size=48, d_model=12, n_heads=n_heads, n_layers=n_layers)
    return randomized(AttentionOnlyDecoder(config)).eval(), held_out_batch(5, 3)


def measured(graph: EdgeGraph, batch: Batch, edges) -> str:
    """Return what is said with some edges alone."""
    (ids,), counted = batch.inputs, repeated_part(batch)
    logits = graph.logits(ids, list(edges))
    loss = F.cross_entropy(logits[counted], batch.labels[counted]).item()
    right = (logits.argmax(-1) == batch.labels)[counted].double().mean()
    return f"{100 * right:.1f} % right, loss {loss:.2f} nats"


def named(edge: Edge) -> str:
    sender = edge.sender if edge.sender == "embedding" else f"head {edge.sender}"
    if edge.receiver == "logits":
        return f"{sender} to logits"
    return f"{sender} to {PARTS[edge.receiver[-1]]} of head {edge.receiver[:-2]}"


def check(page: Shown, graph: EdgeGraph, batch: Batch, cut: list[Edge], costs: bool) -> None:
    left = [edge for edge in graph.edges if edge not in cut]
    n, shown, told = len(graph.edges), page.all(), []
    for edge in graph.edges:
        words = f"{named(edge)}, {'cut' if edge in cut else 'there'}"
        then = measured(graph, batch, {*left} ^ {edge})
        words += f"; {'with it back' if edge in cut else 'without it'} {then}" * costs
        told.append(words)
    all_, now, alone = (measured(graph, batch, one) for one in (graph.edges, left, cut))
    told.append(f"all {n} edges: {all_}")
    title = f"All {n} edges: {all_}"
    if cut:
        told.append(f"the {len(left)} that are left: {now}")
        told.append(f"the {len(cut)} cut ones alone: {alone}")
        title = f"{len(left)} of {n} edges left: {now}"
    assert_agree(shown["told"], told)
    assert_agree([shown["title"]], [title])


@pytest.mark.parametrize("n_layers, n_heads", [(2, 2), (3, 1), (1, 3)])
def test_every_number_is_that_of_the_packages_graph(show, n_layers, n_heads):
    model, batch = small(n_layers, n_heads)
    graph = EdgeGraph(model, *batch.inputs)
    page = show(CircuitGraph(model, batch))
    some = graph.edges[1::3]
    for cut, costs in (([], False), (some, False), (some, True), (graph.edges, True), ([], True)):
        page.set(cut=[list(edge) for edge in cut], costs=costs)
        check(page, graph, batch, cut, costs)


def test_the_lessons_size_with_means_of_other_sequences_gives_the_same_numbers(show):
    torch.manual_seed(2)
    model, batch = randomized(AttentionOnlyDecoder()).eval(), held_out_batch(batch_size=2)
    (others,) = held_out_batch(batch_size=3, seed=5).inputs
    page, graph = show(CircuitGraph(model, batch, (), others)), EdgeGraph(model, others)
    page.set(cut=[list(edge) for edge in NOTES])
    check(page, graph, batch, NOTES, False)


def test_an_edge_is_cut_by_click_or_by_key_and_maps_show_what_changes(show):
    maps = '[...root.querySelectorAll("svg path.still")].map(path => path.getAttribute("d"))'
    model, batch = small()
    page = show(CircuitGraph(model, batch))
    assert "By chance 20.0 % would be." in page.said  # a row has 5 of the 48 tokens
    whole = page.read(maps)
    for receiver in ("logits", "0.0.k"):  # no head reads the logits
        page.set(cut=[["embedding", receiver]])
        assert (page.read(maps) == whole) == (receiver == "logits")
    page.set(cut=[])
    page.click("head 0.1 to keys of head 1.1, there")
    assert page.get("cut") == [["0.1", "1.1.k"]]
    assert "Cut: head 0.1 to keys of head 1.1." in page.said
    assert page.press("ArrowLeft") == "head 0.0 to keys of head 1.1, there"
    page.press("Enter", "ArrowRight", "Enter")
    assert page.get("cut") == [["0.0", "1.1.k"]]
    near = page.page.locator('rect[data-of="1.0 logits"]').bounding_box()
    assert min(near["width"], near["height"]) >= 24  # what a finger hits


def test_the_circuit_and_all_but_it_are_a_button_away(show):
    model, batch = small()
    edges = [list(edge) for edge in EdgeGraph(model, *batch.inputs).edges]
    page = show(CircuitGraph(model, batch, [Edge(*edge) for edge in edges[::2]]))
    buttons = {"Only the circuit": edges[1::2], "All but the circuit": edges[::2], "All edges": []}
    for name, cut in buttons.items():
        page.click(name)
        assert page.get("cut") == cut
        assert page.named(name).get_attribute("aria-pressed") == "true"


def test_bad_input_says_what_to_change(unchecked, monkeypatch):
    model, batch = small()
    assert_refused("no edge", CircuitGraph, model, batch, [Edge("0.0", "0.1.q")])
    assert_refused("to cut: choose", CircuitGraph, model, batch, cut=[("0.0", "0.1.q")])
    fresh = Batch((torch.arange(48)[None],), torch.arange(48)[None])
    assert_refused("no token repeats, so no label counts", CircuitGraph, model, fresh)
    many = Batch((batch.inputs[0].repeat(30, 1),), batch.labels.repeat(30, 1))
    assert_refused("4,320 tokens to read, and .* at most 4,096", CircuitGraph, model, many)
    short = batch.inputs[0][:, :40]
    assert_refused("the means are of 40 positions", CircuitGraph, model, batch, (), short)
    biased = AttentionOnlyDecoder(replace(CONFIG, bias=True)).eval()
    assert_refused("the model has biases", CircuitGraph, biased, batch)
    assert_refused("in training mode", CircuitGraph, AttentionOnlyDecoder(), batch)
    other = DecoderOnlyTransformer(CONFIG).eval()
    assert_refused("DecoderOnlyTransformer has more than heads", CircuitGraph, other, batch)
    monkeypatch.setattr(circuit_graph, "MOST_EDGES", 28)
    assert_refused("29 edges do not fit the picture, 28 do", CircuitGraph, model, batch)
