"""Attention equals its formula and PyTorch's own layer, on both of its paths."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import nn

from tests.parity import assert_equal, copy_weights, drawn, randomized, sizes, small_config
from transformer_lesson.model.attention import (
    MultiHeadAttention,
    attention_scores,
    masked_softmax,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.positions import RotaryPositions


def random_mask(*shape: int) -> torch.Tensor:
    """Return a mask that leaves every query at least its first key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def both_paths(attention, *inputs):
    """Return the fused path's output, the recorded path's, and the recorded run."""
    fused = attention(*inputs)
    with record(attention) as run:
        recorded = attention(*inputs)
    return fused, recorded, run


# The formula


@drawn
@given(sizes("batch", "query", "key", "d_head", "d_value"))
def test_attention_is_the_formula_written_as_loops(size):
    Q = torch.randn(size.batch, size.query, size.d_head)
    K = torch.randn(size.batch, size.key, size.d_head)
    V = torch.randn(size.batch, size.key, size.d_value)
    mask = random_mask(size.batch, size.query, size.key)
    output, weights = scaled_dot_product_attention(Q, K, V, mask)
    for b in range(size.batch):
        for q in range(size.query):
            seen = mask[b, q]  # softmax over the allowed keys alone
            expected = ((K[b, seen] @ Q[b, q]) / math.sqrt(size.d_head)).softmax(0)
            assert_equal(weights[b, q, seen], expected)
            assert (weights[b, q, ~seen] == 0).all()
            assert_equal(output[b, q], expected @ V[b, seen])


def test_scaling_keeps_the_variance_of_the_scores_at_1():
    torch.manual_seed(0)
    scores = attention_scores(torch.randn(1, 300, 256), torch.randn(1, 300, 256))
    assert scores.var().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_softmax_survives_huge_scores_and_still_hides(size):
    scores = torch.tensor([[size, size, -size]])
    weights = masked_softmax(scores, torch.tensor([[True, False, False]]))
    assert weights.tolist() == [[1, 0, 0]]


@drawn
@given(sizes("batch", "n", "n_heads", "d_head"))
def test_each_head_gets_its_own_slice_and_merging_undoes_splitting(size):
    x = torch.randn(size.batch, size.n, size.n_heads * size.d_head)
    heads = split_heads(x, size.n_heads)
    for i in range(size.n_heads):
        assert torch.equal(heads[:, i], x[..., i * size.d_head : (i + 1) * size.d_head])
    assert torch.equal(merge_heads(heads), x)


# PyTorch's own layer


@drawn
@given(sizes("batch", "query", "key", "n_heads", "d_head"))
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_module_equals_multihead_attention(masked, bias, size):
    d_model = size.n_heads * size.d_head
    theirs = randomized(nn.MultiheadAttention(d_model, size.n_heads, bias=bias, batch_first=True))
    ours = MultiHeadAttention(d_model, size.n_heads, bias=bias)
    copy_weights(theirs, ours)
    query = torch.randn(size.batch, size.query, d_model)
    key, value = torch.randn(2, size.batch, size.key, d_model)
    allowed = random_mask(size.query, size.key) if masked else None
    real = random_mask(size.batch, size.key)
    output, weights = theirs(
        *(query, key, value),
        key_padding_mask=~real,
        attn_mask=~allowed if masked else None,
        average_attn_weights=False,
    )
    mask = real[:, None, None, :]  # (batch, 1, 1, key)
    fused, recorded, run = both_paths(ours, query, key, value, mask & allowed if masked else mask)
    assert_equal(fused, output)
    assert_equal(recorded, output)
    assert_equal(run["weights"], weights)


@drawn
@given(sizes("batch", "n", "n_heads", "d_head"))
def test_module_equals_multihead_attention_without_any_mask(size):
    d_model = size.n_heads * size.d_head
    theirs = randomized(nn.MultiheadAttention(d_model, size.n_heads, batch_first=True))
    ours = MultiHeadAttention(d_model, size.n_heads)
    copy_weights(theirs, ours)
    x = torch.randn(size.batch, size.n, d_model)
    assert_equal(ours(x, x, x), theirs(x, x, x)[0])


@drawn
@given(sizes("batch", "n", "n_heads", "d_head"))
def test_the_function_equals_the_module(size):
    d_model = size.n_heads * size.d_head
    module = MultiHeadAttention(d_model, size.n_heads, bias=False)
    linears = (module.W_Q, module.W_K, module.W_V, module.W_O)
    x = torch.randn(size.batch, size.n, d_model)
    mask = causal_mask(size.n)
    output = multi_head_attention(x, *(linear.weight.T for linear in linears), size.n_heads, mask)
    assert_equal(output, module(x, x, x, mask))


def test_a_config_sets_sizes_bias_and_dropout():
    module = MultiHeadAttention.from_config(
        small_config(n_heads=3, attention_dropout=0.25, bias=False)
    )
    assert (module.n_heads, module.dropout.p, module.W_Q.bias) == (3, 0.25, None)


# Two paths, one result


@pytest.mark.parametrize("rotate", [None, RotaryPositions()], ids=["plain", "rotary"])
@pytest.mark.parametrize("kind", ["none", "causal", "padding", "all hidden"])
def test_both_paths_give_the_same_output_and_gradients(kind, rotate):
    torch.manual_seed(0)
    attention = randomized(MultiHeadAttention(12, 2, rotate=rotate))
    x = torch.randn(3, 5, 12)
    padding = random_mask(3, 1, 1, 5)
    hidden = torch.zeros(3, 1, 5, 5, dtype=torch.bool)
    mask = {"none": None, "causal": causal_mask(5), "padding": padding, "all hidden": hidden}[kind]
    fused, recorded, _ = both_paths(attention, x, x, x, mask)
    assert_equal(fused, recorded)
    parameters = list(attention.parameters())
    expected = torch.autograd.grad(fused.square().sum(), parameters)
    gradients = torch.autograd.grad(recorded.square().sum(), parameters)
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("recorded", [False, True])
def test_weights_are_materialised_only_while_somebody_records(monkeypatch, recorded):
    called = []

    def spy(name, function):
        return lambda *args, **kwargs: called.append(name) or function(*args, **kwargs)

    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", spy("fused", fused))
    monkeypatch.setattr(
        "transformer_lesson.model.attention.masked_softmax", spy("explicit", masked_softmax)
    )
    attention, x = MultiHeadAttention(12, 2), torch.randn(1, 3, 12)
    if recorded:
        with record(attention):
            attention(x, x, x, causal_mask(3))
    else:
        attention(x, x, x, causal_mask(3))
    assert called == ["explicit" if recorded else "fused"]


def test_recorded_weights_are_those_before_dropout():
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(12, 2, dropout=0.5).train(), torch.randn(2, 5, 12)
    _, recorded, run = both_paths(attention, x, x, x)
    _, calm, quiet = both_paths(attention.eval(), x, x, x)
    assert_equal(run["weights"].sum(-1), torch.ones(2, 2, 5))
    assert torch.equal(run["weights"], quiet["weights"])
    assert not torch.allclose(recorded, calm)  # dropout did act


@pytest.mark.parametrize("recorded", [False, True])
def test_dropout_acts_in_training_only(recorded):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(12, 2, dropout=0.5), torch.randn(1, 5, 12)
    plain = MultiHeadAttention(12, 2)
    plain.load_state_dict(attention.state_dict())
    assert not torch.allclose(both_paths(attention.train(), x, x, x)[recorded], plain(x, x, x))
    assert_equal(both_paths(attention.eval(), x, x, x)[recorded], plain(x, x, x))


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


# Bad input


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(3, 3), "mask has dtype torch.float32, but it must be boolean"),
        (torch.ones(3, 3, dtype=torch.long), "mask has dtype torch.int64"),
        (causal_mask(4), r"mask has shape \(1, 1, 4, 4\), which does not broadcast"),
        (torch.ones(2, 3, dtype=torch.bool), r"mask has shape \(2, 3\)"),
        (causal_mask(3)[None], r"mask has shape \(1, 1, 1, 3, 3\)"),
    ],
)
def test_a_wrong_mask_is_refused_on_both_paths(mask, message, recorded):
    attention, x = MultiHeadAttention(12, 2), torch.randn(1, 3, 12)
    with pytest.raises(ValueError, match=message):
        if recorded:
            with record(attention):
                attention(x, x, x, mask)
        attention(x, x, x, mask)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_heads(torch.zeros(1, 2, 10), 4), "d_model = 10 cannot be split into 4"),
        (lambda: split_heads(torch.zeros(1, 2, 10), 0), "d_model = 10 cannot be split into 0"),
        (lambda: MultiHeadAttention(10, 4), "d_model = 10 cannot be split into 4 equal heads"),
        (
            lambda: attention_scores(torch.zeros(2, 5), torch.zeros(2, 6)),
            "queries have 5 numbers, keys 6",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
