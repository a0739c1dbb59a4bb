"""Few rows take another way through `Linear`; the result is that of `nn.Linear`."""

import pytest
import torch
from torch import nn

from transformer_lesson.model.fast import Linear

mkl = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this PyTorch has no MKL")
SHAPES = [(1, 1, 384), (384,), (8, 1, 384), (2, 5, 384), (1, 10, 384), (0, 1, 384)]


def turns(layer, x, monkeypatch) -> bool:
    """Whether the layer takes the way for few rows."""
    calls = []
    turned = layer._turned
    monkeypatch.setattr(layer, "_turned", lambda x: calls.append(x) or turned(x))
    layer(x)
    return bool(calls)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_few_rows_give_what_nn_linear_gives(shape, bias):
    torch.manual_seed(0)
    layer, x = Linear(384, 512, bias=bias), torch.randn(shape)
    with torch.no_grad():
        ours = layer(x)
        torch.testing.assert_close(ours, nn.functional.linear(x, layer.weight, layer.bias))
    assert ours.is_contiguous()


@mkl
@pytest.mark.parametrize("transpose", [False, True])
def test_rows_that_are_not_contiguous_are_read_in_the_right_order(transpose, monkeypatch):
    layer = Linear(384, 512)
    x = torch.randn(384, 3).T if transpose else torch.randn(3, 2, 384)[:, 0]
    with torch.no_grad():
        assert turns(layer, x, monkeypatch)
        torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


@mkl
@pytest.mark.parametrize(
    ("sizes", "rows", "dtype", "grad", "expected"),
    [
        ((384, 384), 1, torch.float32, False, True),
        ((384, 384), 10, torch.float32, False, True),
        ((384, 384), 11, torch.float32, False, False),
        ((128, 128), 1, torch.float32, False, False),
        ((384, 384), 1, torch.float64, False, False),
        ((384, 384), 1, torch.bfloat16, False, False),
        ((384, 384), 1, torch.float32, True, False),
    ],
)
def test_only_few_rows_of_large_float32_matrices_are_turned(
    sizes, rows, dtype, grad, expected, monkeypatch
):
    layer = Linear(*sizes, dtype=dtype)
    with torch.set_grad_enabled(grad):
        assert turns(layer, torch.randn(rows, sizes[0], dtype=dtype), monkeypatch) == expected


def test_gradients_are_those_of_nn_linear():
    layer, x = Linear(384, 384), torch.randn(1, 384, requires_grad=True)
    layer(x).square().sum().backward()
    expected = 2 * (x @ layer.weight.T + layer.bias) @ layer.weight
    torch.testing.assert_close(x.grad, expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2])
def test_one_row_in_bfloat16_is_right_and_leaves_onednn_as_it_was(rows):
    before = torch.backends.mkldnn.enabled
    layer, x = Linear(384, 512, dtype=torch.bfloat16), torch.randn(rows, 384).bfloat16()
    with torch.no_grad():
        exact = nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
        torch.testing.assert_close(layer(x).double(), exact, rtol=0.01, atol=0.01)
    assert torch.backends.mkldnn.enabled == before
    layer.bias = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))  # does not fit
    with torch.no_grad(), pytest.raises(RuntimeError):
        layer(x)
    assert torch.backends.mkldnn.enabled == before
