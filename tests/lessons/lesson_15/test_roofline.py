"""Limits and speeds of a machine, as far as they do not depend on how busy it is."""

from types import SimpleNamespace

import torch

from transformer_lesson.lessons.lesson_15 import roofline
from transformer_lesson.lessons.lesson_15.roofline import Roofline, feed_forward_speed, seconds
from transformer_lesson.model.feed_forward import feed_forward


def test_below_the_edge_memory_limits_and_above_it_products():
    machine = Roofline(operations=100.0, bandwidth=20.0)
    assert [machine.at(intensity) for intensity in (0.5, 5.0, 50.0)] == [10.0, 100.0, 100.0]


def test_one_call_is_not_counted_and_each_piece_as_in_its_fastest_round(monkeypatch):
    calls = []
    assert seconds(lambda: calls.append(0), rounds=3) > 0 and len(calls) == 4
    ends = [9.0, 9.0, 1.0, 5.0, 4.0, 2.0]  # of two pieces, three times; the first is not counted
    ticks = iter([tick for end in ends for tick in (0.0, end)])
    monkeypatch.setattr(roofline, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert seconds(lambda: None, lambda: None, rounds=2) == 1 + 2


def test_weights_are_bytes_and_so_are_tokens():
    layers = [(torch.randn(8, 16), torch.zeros(16), torch.randn(16, 8), torch.zeros(8))] * 3
    rows = []

    def network(x, *layer):
        rows.append(len(x))
        return feed_forward(x, *layer)

    found = [feed_forward_speed(layers, tokens, network) for tokens in (1, 6)]
    expected = [tokens * 512 / (4 * (256 + 48 * tokens)) for tokens in (1, 6)]
    assert [intensity for intensity, _ in found] == expected and set(rows) == {1, 6}
    assert all(speed > 0 for _, speed in found)
    assert min(roofline.measured_roofline(sizes=(8, 16), numbers=1024)) > 0
