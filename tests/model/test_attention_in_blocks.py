"""Attention in blocks is attention, and never holds its table."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lesson.model.attention_in_blocks import attention_in_blocks, online_softmax


def qkv(query=11, key=11, d_head=5, d_value=7):
    return [torch.randn(2, 3, n, d) for n, d in ((query, d_head), (key, d_head), (key, d_value))]


@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 11, 40])
@pytest.mark.parametrize("causal", [False, True])
def test_any_blocks_give_what_pytorch_gives(block_size, causal):
    Q, K, V = qkv()
    expected = F.scaled_dot_product_attention(Q, K, V, is_causal=causal)
    assert torch.allclose(attention_in_blocks(Q, K, V, block_size, causal), expected, atol=1e-6)


def test_there_may_be_more_keys_than_queries_but_not_in_a_causal_text():
    Q, K, V = qkv(query=5, key=13)
    expected = F.scaled_dot_product_attention(Q, K, V)
    assert torch.allclose(attention_in_blocks(Q, K, V, 4), expected, atol=1e-6)
    with pytest.raises(ValueError, match="there are 5 and 13"):
        attention_in_blocks(Q, K, V, 4, causal=True)
    with pytest.raises(ValueError, match="block_size is 0, but"):
        attention_in_blocks(Q, K, V, 0)


def test_scores_far_apart_neither_overflow_nor_vanish():
    Q, K, V = (100 * x.double() for x in qkv())
    expected = F.scaled_dot_product_attention(Q, K, V)
    assert torch.allclose(attention_in_blocks(Q, K, V, 2), expected)


def test_gradients_are_those_of_pytorch():
    inputs = [x.requires_grad_() for x in qkv()]
    ours = torch.autograd.grad(attention_in_blocks(*inputs, 3, True).square().sum(), inputs)
    whole = F.scaled_dot_product_attention(*inputs, is_causal=True).square().sum()
    for one, other in zip(ours, torch.autograd.grad(whole, inputs), strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_query_that_has_seen_nothing_keeps_an_empty_state():
    scores, values = torch.tensor([[-math.inf, -math.inf], [1.0, -math.inf]]), torch.ones(2, 3)
    empty = torch.full((2,), -math.inf), torch.zeros(2), torch.zeros(2, 3)
    largest, total, output = online_softmax(*empty, scores, values)
    assert largest.tolist() == [-math.inf, 1.0] and total.tolist() == [0.0, 1.0]
    assert output.tolist() == [[0.0] * 3, [1.0] * 3]
    again = online_softmax(largest, total, output, scores, values)
    assert again[0].tolist() == [-math.inf, 1.0] and again[1].tolist() == [0.0, 2.0]
