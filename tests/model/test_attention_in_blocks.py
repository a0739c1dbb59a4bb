"""Attention in blocks is attention, and never holds its table."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lesson.model.attention_in_blocks import attention_in_blocks


def qkv(query=11, key=11, d_head=5, d_value=7):
    return [torch.randn(2, 3, n, d) for n, d in ((query, d_head), (key, d_head), (key, d_value))]


def test_there_may_be_more_keys_than_queries_but_not_in_a_causal_text():
    Q, K, V = qkv(query=5, key=13)
    expected = F.scaled_dot_product_attention(Q, K, V)
    assert torch.allclose(attention_in_blocks(Q, K, V, 4), expected, atol=1e-6)
    with pytest.raises(ValueError, match="there are 5 and 13"):
        attention_in_blocks(Q, K, V, 4, causal=True)
    with pytest.raises(ValueError, match="block_size is 0, but"):
        attention_in_blocks(Q, K, V, 0)


def test_gradients_are_those_of_pytorch():
    inputs = [x.requires_grad_() for x in qkv()]
    ours = torch.autograd.grad(attention_in_blocks(*inputs, 3, True).square().sum(), inputs)
    whole = F.scaled_dot_product_attention(*inputs, is_causal=True).square().sum()
    for one, other in zip(ours, torch.autograd.grad(whole, inputs), strict=True):
        assert torch.allclose(one, other, atol=1e-4)
