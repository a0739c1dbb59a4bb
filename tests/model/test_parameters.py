"""Counts by formula, by counting our models, and by counting a real nn.Transformer."""

import pytest
import torch

from benchmarks import gpu
from tests.parity import small_config
from transformer_lesson.model import parameters
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


@pytest.mark.parametrize("positions", ["rotary", "learned"])
@pytest.mark.parametrize("tied", [True, False])
def test_what_is_only_looked_up_takes_part_in_no_product(positions, tied):
    model = DecoderOnlyTransformer(small_config(positions=positions, tie_embeddings=tied))
    assert parameters.count_product_weights(model) == gpu.matmul_weights(model.config)
