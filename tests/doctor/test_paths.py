"""Paths are seen in plain functions: residuals, what a sublayer reads, gates."""

import pytest
import torch

from tests.doctor.functions import patient
from transformer_lesson.doctor.paths import gates, paths, stacks


def said(probe, *faults):
    """Return the codes that a probe finds."""
    return [one.code for one in probe(patient(*faults))]


@pytest.mark.parametrize("design", ["plain", "beside", "deep keys", "two stacks"])
def test_of_sound_functions_nothing_is_said(design):
    assert said(paths, design) == said(gates, design) == []


@pytest.mark.parametrize("fault", ["off the stream", "kept too early"])
def test_an_encoder_and_a_decoder_of_one_text_are_told_apart(fault):
    target, source = stacks(patient("two stacks"))
    assert len(source.last()) == 2 and len(target.last()) == 4
    assert said(paths, "two stacks", fault) == ["off_the_stream"]


@pytest.mark.parametrize("way", ["table[ids]", "embedding", "index_select"])
def test_a_table_is_found_and_changed_however_it_is_looked_up(way):
    one = patient(way)
    (ids,) = one.texts(2)
    tables = one.tables_of(ids, ids)
    assert [id(table) for table in tables] == [id(one.model.w["table"])]
    token, before = int(ids[0, 2]), one.logits(ids)
    with one.another_vector(tables, token, ids):
        moved = (one.logits(ids) - before)[0].abs().amax(-1) > 1e-4
    assert moved[2:].all() and not moved[:2].any() and torch.equal(one.logits(ids), before)
    assert said(paths, way) == said(gates, way) == []
    assert said(paths, way, "off the stream") == ["off_the_stream"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("no residual", "residual_missing"),
        ("doubled", "residual_doubled"),
        ("off the stream", "off_the_stream"),
        ("kept too early", "off_the_stream"),
    ],
)
def test_a_path_that_leaves_the_stream_is_named(fault, code):
    assert said(paths, fault) == [code]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("activation late", "gate_after_product"),
        ("bilinear", "gate_without_activation"),
        ("linear", "linear_feed_forward"),
        ("norm on query", "norm_on_query_only"),
    ],
)
def test_what_an_activation_and_a_projection_read_is_named(fault, code):
    assert said(gates, fault) == [code]


def test_a_finding_says_at_which_weight():
    (one,) = paths(patient("no residual"))
    assert one.where == "w.o0"
