"""Counts by formula, by counting our models, and by counting a real nn.Transformer."""

import pytest
import torch
from hypothesis import given
from torch import nn

from benchmarks import gpu
from tests.parity import drawn, sizes, small_config
from transformer_lesson.model import parameters, transformers
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

BASE = {"vocab_size": 37_000, "d_model": 512, "n_heads": 8, "n_layers": 6, "d_ff": 2048}
STACKS = 44_140_544  # what nn.Transformer counts, its two last norms included
LAST_NORMS = 2 * 2 * 512  # 2,048 numbers that the 2017 paper does not have
EMBEDDING = 37_000 * 512  # one matrix for source, target and output


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"norm_position": "pre"}, STACKS + EMBEDDING),
        ({"norm_position": "post"}, STACKS - LAST_NORMS + EMBEDDING),
        ({"tie_embeddings": False}, STACKS + 3 * EMBEDDING),
    ],
)
def test_the_base_model_with_one_shared_embedding_or_three(changes, expected):
    assert (STACKS + EMBEDDING, STACKS - LAST_NORMS + EMBEDDING) == (63_084_544, 63_082_496)
    with torch.device("meta"):  # the base model would take a quarter of a gigabyte
        model = EncoderDecoderTransformer(small_config(**BASE | changes))
    assert count_parameters(model) == expected


@drawn
@given(sizes("n_heads", "d_head", "d_ff", "n_layers"))
def test_the_encoder_formula_equals_counting(size):
    d_model = size.n_heads * size.d_head
    options = {"positions": "learned", "d_model": d_model} | vars(size)
    del options["d_head"]
    model = transformers.EncoderOnlyTransformer(small_config(**options))
    attention = 4 * (d_model**2 + d_model)
    feed_forward = 2 * d_model * size.d_ff + size.d_ff + d_model
    counted = size.n_layers * (attention + feed_forward + 2 * 2 * d_model)
    assert count_parameters(model.encoder) == counted
    layer = nn.TransformerEncoderLayer(d_model, size.n_heads, size.d_ff)
    assert size.n_layers * count_parameters(layer) == counted


@pytest.mark.parametrize("positions", ["rotary", "learned"])
@pytest.mark.parametrize("tied", [True, False])
def test_what_is_only_looked_up_takes_part_in_no_product(positions, tied):
    model = DecoderOnlyTransformer(small_config(positions=positions, tie_embeddings=tied))
    assert parameters.count_product_weights(model) == gpu.matmul_weights(model.config)
