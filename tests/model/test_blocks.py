"""Norm and feed-forward are their formulas, and the blocks as functions those as modules."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import nn

from tests.parity import assert_equal, drawn, randomized, sizes, small_config
from transformer_lesson.model.blocks import DecoderBlock, EncoderBlock, decoder_block, encoder_block
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 1.0, 1e3])
def test_layer_norm_equals_pytorchs(scale, epsilon):
    norm = randomized(nn.LayerNorm(11, eps=epsilon))
    x = torch.randn(3, 5, 11) * scale + scale
    assert_equal(layer_norm(x, norm.weight, norm.bias, epsilon), norm(x))
    default = F.layer_norm(x, (11,), norm.weight, norm.bias)
    assert_equal(layer_norm(x, norm.weight, norm.bias), default)


@drawn
@given(sizes("batch", "n", "d_model", "d_ff"))
def test_feed_forward_is_the_formula(size):
    x = torch.randn(size.batch, size.n, size.d_model)
    first, second = nn.Linear(size.d_model, size.d_ff), nn.Linear(size.d_ff, size.d_model)
    output = feed_forward(x, first.weight.T, first.bias, second.weight.T, second.bias)
    assert_equal(output, second(first(x).relu()))


def test_functions_equal_the_post_norm_blocks():
    config = small_config(norm_position="post")
    encoder, decoder = randomized(EncoderBlock(config)), randomized(DecoderBlock(config))
    x, memory, mask = torch.randn(2, 5, 12), torch.randn(2, 3, 12), causal_mask(5)
    output = encoder_block(
        *(x, lambda h: encoder.self_attention(h, h, h, mask)),
        *(encoder.feed_forward, encoder.norm_1, encoder.norm_2),
    )
    assert_equal(output, encoder(x, mask))
    output = decoder_block(
        *(x, memory),
        lambda h: decoder.self_attention(h, h, h, mask),
        lambda h, memory: decoder.cross_attention(h, memory, memory),
        *(decoder.feed_forward, decoder.norm_1, decoder.norm_2, decoder.norm_3),
    )
    assert_equal(output, decoder(x, memory, mask))


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
