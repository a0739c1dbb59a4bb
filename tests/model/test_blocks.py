"""Norm and feed-forward are their formulas, and the blocks as functions those as modules."""

import pytest
import torch

from tests.parity import assert_equal, small_config
from transformer_lesson.model.blocks import DecoderBlock, EncoderBlock


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
