"""Limits and speeds of a machine, as far as they do not depend on how busy it is."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_lesson.lessons.lesson_15 import roofline
from transformer_lesson.lessons.lesson_15.roofline import (
    Roofline,
    attention_costs,
    feed_forward_layers,
    feed_forward_speed,
    seconds,
    six_products,
)
from transformer_lesson.model.feed_forward import feed_forward


def test_below_the_edge_memory_limits_and_above_it_products():
    machine = Roofline(operations=100.0, bandwidth=20.0)
    assert [machine.at(intensity) for intensity in (0.5, 5.0, 50.0)] == [10.0, 100.0, 100.0]


def test_one_call_is_not_counted_and_each_piece_as_in_its_fastest_round(monkeypatch):
    calls = []
    assert seconds(lambda: calls.append(0), rounds=3) > 0 and len(calls) == 4
    ends = [9.0, 9.0, 1.0, 5.0, 4.0, 2.0]  # of two pieces, three times; the first is not counted
    ticks = iter([tick for end in ends for tick in (0.0, end)])
    monkeypatch.setattr(roofline, "clock", lambda: next(ticks))
    assert seconds(lambda: None, lambda: None, rounds=2) == 1 + 2


def test_weights_are_bytes_and_so_are_tokens():
    layers, rows = feed_forward_layers(8, 16, size=3 * 4 * 2 * 8 * 16), []
    assert len(layers) == 3 and len(feed_forward_layers(8, 16)) == 1

    def network(x, *layer):
        rows.append(len(x))
        return feed_forward(x, *layer)

    found = [feed_forward_speed(layers, tokens, network) for tokens in (1, 6)]
    expected = [tokens * 512 / (4 * (256 + 48 * tokens)) for tokens in (1, 6)]
    assert [intensity for intensity, _ in found] == expected and set(rows) == {1, 6}
    assert all(speed > 0 for _, speed in found)
    assert min(roofline.measured_roofline(sizes=(8, 16), numbers=1024)) > 0


def test_a_measurement_is_of_one_thread_and_leaves_their_number_as_it_was(monkeypatch):
    numbers = [4]
    monkeypatch.setattr(torch, "get_num_threads", lambda: numbers[-1])
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    seen = []
    seconds(lambda: seen.append(numbers[-1]), rounds=1)
    with pytest.raises(ZeroDivisionError):
        seconds(lambda: 1 / 0)
    assert seen == [1, 1] and numbers == [4, 1, 4, 1, 4]


@pytest.mark.parametrize(("n_queries", "n_keys"), [(7, 7), (1, 7), (3, 7)])
def test_operations_are_those_that_pytorch_counts(n_queries, n_keys):
    batch, d_model, n_heads = 2, 15, 3
    x = torch.randn(batch, n_queries, d_model, requires_grad=True)
    weights = torch.randn(4, d_model, d_model, requires_grad=True)
    cache = torch.randn(2, batch, n_heads, n_keys, d_model // n_heads, requires_grad=True)
    forward, training, _ = attention_costs(batch, n_queries, n_keys, d_model, n_heads)
    with FlopCounterMode(display=False) as counter:
        output = six_products(x, weights, n_heads, cache if n_queries < n_keys else None)
    assert counter.get_total_flops() == forward
    with FlopCounterMode(display=False) as counter:
        output.sum().backward()
    unused = 0 if n_queries == n_keys else 2 * 2 * 2 * batch * n_queries * d_model**2
    assert counter.get_total_flops() == training - forward - unused  # K and V of the new tokens


def test_bytes_are_those_of_what_each_product_reads_and_writes():
    batch, n_queries, n_keys, d_model, n_heads = 2, 3, 7, 15, 3
    numbers = 0
    for times, rows, inner, columns in (
        *[(1, batch * n_queries, d_model, d_model)] * 4,
        (batch * n_heads, n_queries, d_model // n_heads, n_keys),
        (batch * n_heads, n_queries, n_keys, d_model // n_heads),
    ):
        numbers += times * (rows * inner + inner * columns + rows * columns)
    assert attention_costs(batch, n_queries, n_keys, d_model, n_heads)[2] == 4 * numbers


def test_six_products_are_attention_and_have_a_speed():
    layer = nn.MultiheadAttention(12, 3, bias=False, batch_first=True)
    x = torch.randn(2, 5, 12)
    weights = [W.T for W in (*layer.in_proj_weight.chunk(3), layer.out_proj.weight)]
    torch.testing.assert_close(six_products(x, weights, 3), layer(x, x, x)[0])
    for n_queries in (1, 5):
        assert roofline.attention_speed(2, n_queries, 5, 12, 3, size=10_000) > 0
