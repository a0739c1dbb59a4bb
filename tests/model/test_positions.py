"""Sinusoidal, learned and rotary positions against their formulas and against Llama's code."""

import math

import pytest
import torch
from hypothesis import given
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from tests.parity import assert_equal, drawn, sizes
from transformer_lesson.model.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    apply_rotary,
    shift_matrix,
    sinusoidal_encoding,
)


def formula(n_positions: int, d_model: int, base: float) -> torch.Tensor:
    """Section 3.5 of the paper, one number after the other, in float64."""
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = pos / base ** (2 * i / d_model)
            table[pos, 2 * i], table[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


@pytest.mark.parametrize("base", [10000.0, 100.0, 1.0])
@pytest.mark.parametrize(("n_positions", "d_model"), [(1, 2), (7, 10), (60, 64), (11, 512)])
def test_sinusoidal_encoding_is_the_formula(n_positions, d_model, base):
    ours = sinusoidal_encoding(n_positions, d_model, base)
    assert ours.dtype == torch.float32
    assert_equal(ours.double(), formula(n_positions, d_model, base))


def test_sinusoidal_encoding_stays_near_the_formula_far_out():
    ours = sinusoidal_encoding(5000, 16).double()
    assert (ours - formula(5000, 16, 10000.0)).abs().max() < 1e-6


def test_positions_and_dimensions_count_from_0():
    table = sinusoidal_encoding(2, 6)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert table[1, 0].item() == pytest.approx(math.sin(1))  # the first pair turns by 1 radian


@pytest.mark.parametrize("k", [1, 5, 20])
def test_moving_by_k_positions_rotates_every_pair(k):
    table = sinusoidal_encoding(40, 16).view(40, 8, 2)  # (pos, pair, sine and cosine)
    turn = table[k]  # sine and cosine of the angle of each pair
    sine, cosine = turn[:, 0], turn[:, 1]
    first = table[:-k, :, 0] * cosine + table[:-k, :, 1] * sine
    second = table[:-k, :, 1] * cosine - table[:-k, :, 0] * sine
    assert_equal(torch.stack([first, second], dim=-1), table[k:])


@pytest.mark.parametrize("k", [-7, -1, 0, 1, 5])
def test_one_matrix_takes_every_position_k_further(k):
    table = sinusoidal_encoding(40, 16, base=300.0)
    matrix = shift_matrix(k, 16, base=300.0)
    assert_equal(table[10:30] @ matrix, table[10 + k : 30 + k])
    assert_equal(matrix @ shift_matrix(-k, 16, base=300.0), torch.eye(16))


def test_shift_matrix_refuses_bad_sizes():
    for arguments, message in {(1, 7): "d_model is 7", (1, 8, -1.0): "base is -1.0"}.items():
        with pytest.raises(ValueError, match=message):
            shift_matrix(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 7), "d_model is 7, but sine and cosine come in pairs"),
        ((0, 8), "n_positions is 0"),
        ((4, 0), "d_model 0: both must be >= 1"),
        ((4, 8, 0.0), "base is 0.0, but wavelengths need a positive base"),
        ((4, 8, float("nan")), "base is nan"),
    ],
)
def test_sinusoidal_encoding_refuses_bad_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        sinusoidal_encoding(*arguments)


def test_sinusoidal_positions_look_up_any_shape_and_save_nothing():
    positions = SinusoidalPositions(6, 4)
    ids = torch.tensor([[0, 5], [3, 3]])
    assert torch.equal(positions(ids), sinusoidal_encoding(6, 4)[ids])
    assert not positions.state_dict() and not list(positions.parameters())


def test_learned_positions_are_a_trained_table():
    positions = LearnedPositions(6, 4)
    assert positions.weight.shape == (6, 4) and positions.weight.requires_grad
    assert torch.equal(positions(torch.tensor([5, 0])), positions.weight[[5, 0]])


@drawn
@given(sizes("batch", "head", "n", "half"))
def test_rotary_equals_llama(size):
    d_head = 2 * size.half
    config = LlamaConfig(
        head_dim=d_head, rope_parameters={"rope_type": "default", "rope_theta": 500.0}
    )
    query, key = torch.randn(2, size.batch, size.head, size.n, d_head)
    positions = torch.randint(0, 50, (size.n,))
    cos, sin = LlamaRotaryEmbedding(config)(query, positions[None])
    theirs = apply_rotary_pos_emb(query, key, cos, sin)
    assert_equal(apply_rotary(query, positions, base=500.0), theirs[0])
    assert_equal(apply_rotary(key, positions, base=500.0), theirs[1])


def test_rotary_keeps_norms_and_leaves_position_0_alone():
    x = torch.randn(3, 7, 10)
    rotated = apply_rotary(x, torch.arange(7))
    assert_equal(rotated.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotated[:, 0], x[:, 0])
    assert (rotated[:, 1:] - x[:, 1:]).abs().amax(dim=-1).min() > 1e-3


def test_rotary_dot_products_depend_on_the_distance_only():
    query, key = torch.randn(2, 1, 10).expand(2, 9, 10)  # one query, one key, at 9 positions
    positions = torch.arange(9)
    dots = apply_rotary(query, positions) @ apply_rotary(key, positions).T  # (query, key)
    for distance in range(-8, 9):
        diagonal = dots.diagonal(distance)
        assert_equal(diagonal, diagonal[:1].expand_as(diagonal))
    assert dots[0].std() > 1e-3  # and they do depend on it


def test_rotary_module_counts_the_tokens_of_the_next_to_last_axis():
    x = torch.randn(2, 3, 5, 8)
    assert torch.equal(RotaryPositions()(x), apply_rotary(x, torch.arange(5)))


def test_kept_angles_serve_only_what_they_were_computed_for():
    rotate, x = RotaryPositions(100.0), torch.randn(2, 3, 5, 8)
    with torch.inference_mode():
        rotate(x)
    x.requires_grad_()
    rotate(x).sum().backward()  # numbers of inference mode would be refused here
    for start, other in ((3, x), (3, x[:, :, :2]), (3, x[..., :6]), (3, x.double())):
        positions = torch.arange(start, start + other.size(-2))
        assert torch.equal(rotate(other, start), apply_rotary(other, positions, 100.0))
    rotate(x)
    rotate.base = 7.0
    assert torch.equal(rotate(x), apply_rotary(x, torch.arange(5), 7.0))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rotary_keeps_the_dtype(dtype):
    assert apply_rotary(torch.randn(3, 4, dtype=dtype), torch.arange(3)).dtype == dtype


def test_rotary_refuses_an_odd_d_head():
    with pytest.raises(ValueError, match="d_head is 5, but rotary positions turn pairs"):
        apply_rotary(torch.zeros(1, 2, 5), torch.arange(2))
