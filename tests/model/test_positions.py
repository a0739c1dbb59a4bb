"""Positions of each kind against their formulas, and against Llama's and T5's code."""

import pytest
import torch
from hypothesis import given
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention

from tests.parity import assert_equal, drawn, sizes
from transformer_lesson.model.positions import (
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
    apply_rotary,
    distance_buckets,
    rotary_angles,
    sinusoidal_encoding,
    stretched_frequencies,
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal_encoding(4, 7), "d_model is 7, but sine and cosine come in pairs"),
        (lambda: sinusoidal_encoding(0, 8), "n_positions is 0"),
        (lambda: sinusoidal_encoding(4, 8, 0.0), "base is 0.0, but wavelengths need a positive"),
        (lambda: stretched_frequencies(7, 10.0, 64, 4.0), "d_head is 7, but rotary positions"),
        (lambda: stretched_frequencies(8, 0.0, 64, 4.0), "base is 0.0, but a rotation needs"),
        (lambda: stretched_frequencies(8, 10.0, 0, 4.0), "trained_length is 0, but a rotation"),
        (
            lambda: stretched_frequencies(8, 10.0, 64, 4.0, 3.0, 3.0),
            "low is 3.0 and high 3.0: make low",
        ),
        (lambda: apply_rotary(torch.zeros(2, 5), torch.arange(2)), "d_head is 5, but rotary posi"),
    ],
)
def test_bad_sizes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sinusoidal_positions_save_nothing_and_learned_ones_are_a_trained_table():
    positions = SinusoidalPositions(6, 4)
    ids = torch.tensor([[0, 5], [3, 3]])
    assert torch.equal(positions(ids), sinusoidal_encoding(6, 4)[ids])
    assert not positions.state_dict() and not list(positions.parameters())
    positions = LearnedPositions(6, 4)
    assert positions.weight.shape == (6, 4) and positions.weight.requires_grad
    assert torch.equal(positions(torch.tensor([5, 0])), positions.weight[[5, 0]])


@drawn
@given(sizes("batch", "head", "n", "half"))
def test_rotary_equals_llama(size):
    d_head = 2 * size.half
    rope = {"rope_type": "default", "rope_theta": 500.0}
    config = LlamaConfig(head_dim=d_head, rope_parameters=rope)
    query, key = torch.randn(2, size.batch, size.head, size.n, d_head)
    positions = torch.randint(0, 50, (size.n,))
    cos, sin = LlamaRotaryEmbedding(config)(query, positions[None])
    theirs = apply_rotary_pos_emb(query, key, cos, sin)
    assert_equal(apply_rotary(query, positions, base=500.0), theirs[0])
    assert_equal(apply_rotary(key, positions, base=500.0), theirs[1])


def test_angles_are_llamas_to_the_bit_where_a_last_digit_of_a_frequency_counts():
    for base, d_head in ((1e4, 64), (5e5, 128), (1e6, 256)):
        rope = {"rope_type": "default", "rope_theta": base}
        theirs = LlamaRotaryEmbedding(LlamaConfig(head_dim=d_head, rope_parameters=rope)).inv_freq
        positions = torch.arange(1400)
        expected = positions[:, None].float() * theirs
        assert torch.equal(rotary_angles(positions, d_head, base), expected)


def test_kept_angles_serve_only_what_they_were_computed_for():
    rotate, x = RotaryPositions(100.0), torch.randn(2, 3, 5, 8)
    with torch.inference_mode():
        rotate(x)
    x.requires_grad_()
    rotate(x).sum().backward()  # numbers of inference mode would be refused here
    for other in (x, x[:, :, :2], x[..., :6], x.double(), x.bfloat16()):
        expected = apply_rotary(other, torch.arange(3, 3 + other.size(-2)), 100.0)
        assert rotate(other, 3).dtype == expected.dtype == other.dtype
        assert torch.equal(rotate(other, 3), expected)
    rotate(x)
    rotate.base = 7.0
    assert torch.equal(rotate(x), apply_rotary(x, torch.arange(5), 7.0))


@pytest.mark.parametrize(("d_head", "base", "factor"), [(128, 500_000.0, 8.0), (64, 1e4, 32.0)])
def test_stretched_frequencies_are_those_of_llama_3(d_head, base, factor):
    rope = {"rope_type": "llama3", "rope_theta": base, "factor": factor}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config = LlamaConfig(
        hidden_size=d_head,
        num_attention_heads=1,
        rope_parameters=rope | {"original_max_position_embeddings": 8192},
    )
    theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    ours = stretched_frequencies(d_head, base, 8192, factor)
    assert ((ours - theirs) / theirs).abs().max() < 1e-5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_buckets", "farthest"), [(32, 128), (8, 9), (4, 700)])
def test_distances_fall_into_the_buckets_of_t5s_code(n_buckets, farthest, causal):
    distance = torch.arange(-999, 1000)
    theirs = T5Attention._relative_position_bucket(distance, not causal, n_buckets, farthest)
    ours = distance_buckets(distance, n_buckets, farthest, causal)
    assert torch.equal(ours, theirs) and ours.max() == n_buckets - 1


def test_a_relative_position_depends_on_the_distance_alone_and_goes_on_from_a_start():
    positions = RelativePositions(3, 8, 20, causal=True)
    whole = positions(7, 7)
    assert whole.shape == (1, 3, 7, 7)
    assert torch.equal(positions(2, 7, start=5), whole[:, :, 5:])
    assert torch.equal(whole[:, :, 1:, 1:], whole[:, :, :-1, :-1])
    assert torch.equal(whole[0, :, 4, 2], positions.weight[2])
