"""Attention equals its formula and PyTorch's own layer, on both of its paths."""

from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import nn

from tests.parity import assert_equal, copy_weights, drawn, randomized, sizes, small_config
from transformer_lesson.model import attention as module
from transformer_lesson.model.attention import MultiHeadAttention, masked_softmax, split_heads
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask


def random_mask(*shape: int) -> torch.Tensor:
    """Return a mask that leaves every query at least its first key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def both_paths(attention, *inputs):
    fused = attention(*inputs)
    with record(attention) as run:
        recorded = attention(*inputs)
    return fused, recorded, run


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_softmax_survives_huge_scores_and_still_hides(size):
    scores = torch.tensor([[size, size, -size]])
    weights = masked_softmax(scores, torch.tensor([[True, False, False]]))
    assert weights.tolist() == [[1, 0, 0]]


@drawn
@given(sizes("batch", "query", "key", "n_heads", "d_head"))
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["none", "padding", "padding and more"])
def test_module_equals_multihead_attention(kind, bias, size):
    d_model = size.n_heads * size.d_head
    theirs = randomized(nn.MultiheadAttention(d_model, size.n_heads, bias=bias, batch_first=True))
    ours = MultiHeadAttention(d_model, size.n_heads, bias=bias)
    copy_weights(theirs, ours)
    inputs = (
        torch.randn(size.batch, size.query, d_model),
        *torch.randn(2, size.batch, size.key, d_model),
    )
    allowed, real = random_mask(size.query, size.key), random_mask(size.batch, size.key)
    padding = real[:, None, None, :]  # (batch, 1, 1, key)
    mask = {"none": None, "padding": padding, "padding and more": padding & allowed}[kind]
    output, weights = theirs(
        *inputs,
        key_padding_mask=None if kind == "none" else ~real,
        attn_mask=~allowed if kind == "padding and more" else None,
        average_attn_weights=False,
    )
    fused, recorded, run = both_paths(ours, *inputs, mask)
    assert_equal(fused, output)
    assert_equal(recorded, output)
    assert_equal(run["weights"], weights)


def test_a_config_sets_sizes_bias_and_dropout():
    config = small_config(n_heads=3, attention_dropout=0.25, bias=False)
    made = MultiHeadAttention.from_config(config)
    assert (made.n_heads, made.dropout.p, made.W_Q.bias) == (3, 0.25, None)


def test_weights_are_materialised_only_while_somebody_records(monkeypatch):
    called = []

    def spy(name, real):
        return lambda *args, **kwargs: called.append(name) or real(*args, **kwargs)

    fused = spy("fused", F.scaled_dot_product_attention)
    monkeypatch.setattr(F, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(module, "masked_softmax", spy("explicit", masked_softmax))
    attention, x = MultiHeadAttention(12, 2), torch.randn(1, 3, 12)
    both_paths(attention, x, x, x, causal_mask(3))
    assert called == ["fused", "explicit"]


@pytest.mark.parametrize("recorded", [False, True])
def test_dropout_acts_in_training_only_and_after_the_recorded_weights(recorded):
    attention, x = MultiHeadAttention(12, 2, dropout=0.5), torch.randn(2, 5, 12)
    plain = MultiHeadAttention(12, 2)
    plain.load_state_dict(attention.state_dict())
    *dropped, run = both_paths(attention.train(), x, x, x)
    *calm, quiet = both_paths(attention.eval(), x, x, x)
    assert not torch.allclose(dropped[recorded], calm[recorded])
    assert_equal(calm[recorded], plain(x, x, x))
    assert torch.equal(run["weights"], quiet["weights"])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_with_every_key_masked_gives_zeros_and_finite_gradients(dtype, recorded):
    attention = MultiHeadAttention(12, 2, bias=False).to(dtype)
    x = torch.randn(2, 5, 12, dtype=dtype, requires_grad=True)
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, :, 3] = False  # one row
    mask[1] = False  # a whole sentence
    output = both_paths(attention, x, x, x, mask)[recorded]
    output.float().square().sum().backward()
    assert (output[0, 3] == 0).all() and (output[1] == 0).all() and (output[0, 0] != 0).any()
    for tensor in (x, *attention.parameters()):
        assert tensor.grad.isfinite().all() and tensor.grad.any()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(3, 3), "mask has dtype torch.float32, but it must be boolean"),
        (causal_mask(4), r"mask has shape \(1, 1, 4, 4\), which does not broadcast"),
        (torch.ones(2, 3, dtype=torch.bool), r"mask has shape \(2, 3\)"),
        (causal_mask(3)[None], r"mask has shape \(1, 1, 1, 3, 3\)"),
    ],
)
def test_a_wrong_mask_is_refused_on_both_paths(mask, message, recorded):
    attention, x = MultiHeadAttention(12, 2), torch.randn(1, 3, 12)
    with pytest.raises(ValueError, match=message):
        with record(attention) if recorded else nullcontext():
            attention(x, x, x, mask)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: split_heads(x, 4), "d_model = 10 cannot be split into 4"),
        (lambda x: MultiHeadAttention(10, 4), "d_model = 10 cannot be split into 4 equal heads"),
        (lambda x: module.attention_scores(x, x[..., :6]), "queries have 10 numbers, keys 6"),
        (lambda x: module.repeat_kv(x[None], 0), "n_groups is 0"),
        *(
            (lambda x, n=n: MultiHeadAttention(24, 6, n_kv_heads=n), f"n_kv_heads is {n}: make it")
            for n in (0, 4)
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.zeros(1, 2, 10))
