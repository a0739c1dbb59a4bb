"""Paths are seen in plain functions: residuals, what a sublayer reads, gates."""

import pytest

from tests.doctor.functions import patient
from transformer_lesson.doctor.paths import gates, paths


def said(probe, *faults):
    """Return the codes that a probe finds."""
    return [one.code for one in probe(patient(*faults))]


def test_of_sound_functions_nothing_is_said():
    assert said(paths) == said(gates) == []


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
