"""Linear maps in few bits give what their matrices give, and take few bytes."""

import pytest
import torch
from torch import nn

from tests.parity import small_config
from transformer_lesson import DecoderOnlyTransformer
from transformer_lesson.model.packed import EightBitLinear, FourBitLinear, in_eight_bits

SHAPES = [(96,), (1, 1, 96), (3, 5, 96), (1, 40, 96)]


def four_bits(d_out: int = 48, d_in: int = 96) -> tuple[FourBitLinear, torch.Tensor]:
    steps = torch.randint(0, 16, (d_out, d_in), dtype=torch.uint8)
    scale, smallest = torch.rand(d_out, d_in // 32) + 0.1, -2 * torch.rand(d_out, d_in // 32)
    spread = (part.repeat_interleave(32, dim=1) for part in (scale, smallest))
    W = next(spread) * steps + next(spread)
    return FourBitLinear(steps, scale, smallest), W


def bytes_of(module: nn.Module) -> int:
    return sum(buffer.numel() * buffer.element_size() for buffer in module.buffers())


@pytest.mark.parametrize(
    ("shape", "d_out"), [(s, 48) for s in SHAPES] + [((2, 96), n) for n in (16, 64, 80, 128, 208)]
)
def test_four_bits_are_scale_times_step_plus_smallest_in_the_rows_order(shape, d_out):
    layer, W = four_bits(d_out)
    x = torch.randn(shape).bfloat16()
    expected = x.float() @ W.T
    assert layer(x).dtype == torch.bfloat16
    assert (layer(x) - expected).norm() < 0.01 * expected.norm()


@pytest.mark.parametrize("shape", SHAPES)
def test_eight_bits_are_the_matrix_but_for_half_a_step(shape):
    W, x = torch.randn(48, 96), torch.randn(shape).bfloat16()
    W[3], W[5] = 0, W[5] / 1000  # each row has a scale of its own
    layer = EightBitLinear(W)
    step = W.abs().amax(dim=1, keepdim=True) / 127
    assert ((layer.steps * step - W).abs() <= 0.501 * step).all()
    expected = x.float() @ W.T
    assert (layer(x) - expected).norm() < 0.02 * expected.norm()
    assert (layer(x)[..., 3] == 0).all() and layer(x).isfinite().all()


def test_few_bits_take_few_bytes():
    layer, W = four_bits(1024, 1024)
    assert bytes_of(layer) == W.numel() * 5 // 8
    assert bytes_of(EightBitLinear(W)) == W.numel() + 2 * 1024


@torch.no_grad()
def test_a_model_in_eight_bits_says_nearly_the_same_and_plain_arithmetic_packs_nothing(monkeypatch):
    config = small_config(d_model=64, n_heads=4, n_kv_heads=2, d_ff=96, bias=False)
    model = DecoderOnlyTransformer(config).eval()
    ids = torch.randint(0, config.vocab_size, (2, 6))
    expected = model(ids)
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "1")
    assert type(in_eight_bits(model).decoder[0].self_attention.W_Q) is nn.Linear
    monkeypatch.delenv("TRANSFORMER_LESSON_PLAIN")
    logits = in_eight_bits(model)(ids)
    left = [name for name, layer in model.named_modules() if type(layer) is nn.Linear]
    assert "projection" in left and not [name for name in left if "self_attention" in name]
    assert type(model.decoder[0].self_attention.W_Q) is EightBitLinear
    assert model.projection.weight is model.embedding.weight
    assert (logits - expected).norm() < 0.03 * expected.norm()
