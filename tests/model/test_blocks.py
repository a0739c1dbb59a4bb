"""Norm, feed-forward and blocks equal PyTorch's own, in both norm positions, with masks."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import nn

from tests.parity import assert_equal, copy_weights, drawn, randomized, sizes, small_config
from transformer_lesson.model.blocks import (
    DecoderBlock,
    EncoderBlock,
    decoder_block,
    encoder_block,
)
from transformer_lesson.model.feed_forward import FeedForward, feed_forward
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm

kinds = [(norm, activation) for norm in ("pre", "post") for activation in ("relu", "gelu")]


def right_padded(batch: int, n: int) -> torch.Tensor:
    """Return which tokens are real, (batch, n): sentence b has max(1, n - b) of them."""
    lengths = (n - torch.arange(batch)).clamp(min=1)
    return torch.arange(n) < lengths[:, None]


def layers(theirs, ours, size, norm_position: str, activation: str):
    """Return PyTorch's layer with random weights and ours with the same."""
    d_model = size.n_heads * size.d_head
    norm_first = norm_position == "pre"
    made = theirs(d_model, size.n_heads, size.d_ff, 0.0, activation, 1e-5, True, norm_first)
    config = small_config(
        d_model=d_model,
        n_heads=size.n_heads,
        d_ff=size.d_ff,
        norm_position=norm_position,
        activation=activation,
        positions="learned",
    )
    block = ours(config)
    copy_weights(randomized(made), block)
    return made, block


# The parts


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 1.0, 1e3])
def test_layer_norm_equals_pytorchs(scale, epsilon):
    torch.manual_seed(0)
    norm = randomized(nn.LayerNorm(11, eps=epsilon))
    x = torch.randn(3, 5, 11) * scale + scale
    assert_equal(layer_norm(x, norm.weight, norm.bias, epsilon), norm(x))


def test_layer_norm_has_pytorchs_default_epsilon():
    x, one, zero = torch.randn(2, 7) * 1e-3, torch.ones(7), torch.zeros(7)
    assert_equal(layer_norm(x, one, zero), F.layer_norm(x, (7,)))


@drawn
@given(sizes("batch", "n", "d_model", "d_ff"))
def test_feed_forward_is_the_formula(size):
    x = torch.randn(size.batch, size.n, size.d_model)
    first, second = nn.Linear(size.d_model, size.d_ff), nn.Linear(size.d_ff, size.d_model)
    output = feed_forward(x, first.weight.T, first.bias, second.weight.T, second.bias)
    assert_equal(output, second(first(x).relu()))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_module_uses_the_chosen_activation(activation):
    module, x = FeedForward(small_config(activation=activation)), torch.randn(2, 3, 12)
    assert_equal(module(x), module.W_2(getattr(F, activation)(module.W_1(x))))


# PyTorch's own layers


@pytest.mark.slow
@drawn
@given(sizes("batch", "n", "n_heads", "d_head", "d_ff"))
@pytest.mark.parametrize(("norm_position", "activation"), kinds)
def test_encoder_block_equals_pytorchs_layer(norm_position, activation, size):
    theirs, ours = layers(nn.TransformerEncoderLayer, EncoderBlock, size, norm_position, activation)
    x = torch.randn(size.batch, size.n, size.n_heads * size.d_head)
    real, causal = right_padded(size.batch, size.n), causal_mask(size.n)
    padding = real[:, None, None, :]  # (batch, 1, 1, key)
    assert_equal(ours(x), theirs(x))
    assert_equal(ours(x, padding), theirs(x, src_key_padding_mask=~real))
    expected = theirs(x, src_mask=~causal[0, 0], src_key_padding_mask=~real)
    assert_equal(ours(x, causal & padding), expected)


@pytest.mark.slow
@drawn
@given(sizes("batch", "target", "source", "n_heads", "d_head", "d_ff"))
@pytest.mark.parametrize(("norm_position", "activation"), kinds)
def test_decoder_block_equals_pytorchs_layer(norm_position, activation, size):
    theirs, ours = layers(nn.TransformerDecoderLayer, DecoderBlock, size, norm_position, activation)
    d_model = size.n_heads * size.d_head
    y = torch.randn(size.batch, size.target, d_model)
    memory = torch.randn(size.batch, size.source, d_model)
    target_real = right_padded(size.batch, size.target)
    source_real, causal = right_padded(size.batch, size.source), causal_mask(size.target)
    assert_equal(ours(y, memory), theirs(y, memory))
    expected = theirs(
        *(y, memory, ~causal[0, 0]),
        tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~source_real,
    )
    mask = causal & target_real[:, None, None, :]
    assert_equal(ours(y, memory, mask, source_real[:, None, None, :]), expected)


# The blocks of the lesson, as functions


def test_encoder_function_equals_the_post_norm_block():
    block = randomized(EncoderBlock(small_config(norm_position="post")))
    x, mask = torch.randn(2, 5, 12), causal_mask(5)

    def attention(h):
        return block.self_attention(h, h, h, mask)

    output = encoder_block(x, attention, block.feed_forward, block.norm_1, block.norm_2)
    assert_equal(output, block(x, mask))


def test_decoder_function_equals_the_post_norm_block():
    block = randomized(DecoderBlock(small_config(norm_position="post")))
    y, memory, mask = torch.randn(2, 5, 12), torch.randn(2, 3, 12), causal_mask(5)
    output = decoder_block(
        *(y, memory),
        lambda h: block.self_attention(h, h, h, mask),
        lambda h, memory: block.cross_attention(h, memory, memory),
        *(block.feed_forward, block.norm_1, block.norm_2, block.norm_3),
    )
    assert_equal(output, block(y, memory, mask))


# Dropout


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize(
    ("block", "points"),
    [
        (EncoderBlock, ["after_attention", "output"]),
        (DecoderBlock, ["after_self_attention", "after_cross_attention", "output"]),
    ],
)
def test_dropout_falls_on_each_sublayers_output_before_it_is_added(block, points, norm_position):
    """With all of every sub-layer dropped, only the residual path is left."""
    made = block(small_config(norm_position=norm_position)).train()
    made.dropout = torch.nn.Dropout(1.0)
    x = torch.randn(2, 3, 12)
    inputs = (x,) if block is EncoderBlock else (x, torch.randn(2, 4, 12))
    expected = x
    for norm in (made.norm_1, made.norm_2, *([made.norm_3] if len(points) == 3 else [])):
        expected = norm(expected) if norm_position == "post" else expected
    assert_equal(made(*inputs), expected)
    assert not torch.allclose(made.eval()(*inputs), expected)
