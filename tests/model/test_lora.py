"""Adapters: nothing changes at first, merged they are one matrix, taken off they leave no trace."""

import copy

import pytest
import torch

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.lora import LoRA, add_lora, lora, merge_lora, remove_lora
from transformer_lesson.model.transformers import DecoderOnlyTransformer

IDS = torch.tensor([[1, 5, 3, 2]])


def small(bias=True):
    torch.manual_seed(0)
    return DecoderOnlyTransformer(ModelConfig(7, 12, 3, 2, 20, 8, bias=bias)).eval()


@pytest.mark.parametrize("bias", [True, False])
def test_an_adapter_that_learned_is_merged_or_leaves_no_trace(bias):
    model = small(bias)
    before = copy.deepcopy(model)
    learns = add_lora(model, rank=3, alpha=6.0)
    assert learns == 2 * 2 * 3 * (12 + 12)
    assert torch.equal(model(IDS), before(IDS))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    for _ in range(3):
        model(IDS).square().sum().backward()
        optimizer.step()
    adapted = model(IDS)
    assert not torch.allclose(adapted, before(IDS), atol=1e-3)
    merged = copy.deepcopy(model)
    merge_lora(merged)
    remove_lora(model)
    assert torch.allclose(merged(IDS), adapted, rtol=1e-5, atol=1e-5)
    assert torch.equal(model(IDS), before(IDS))
    assert merged.state_dict().keys() == before.state_dict().keys()


def test_an_adapter_is_as_loud_as_alpha_says_whatever_its_rank():
    x, W = torch.randn(2, 3, 5), torch.randn(7, 5)
    A, B = torch.randn(2, 5), torch.randn(7, 2)
    once = lora(x, W, A, B, alpha=4.0)
    twice = lora(x, W, torch.cat([A, A]), torch.cat([B, B], dim=1), alpha=4.0)
    assert torch.allclose(once, twice, atol=1e-5)
    assert torch.allclose(once, x @ (W + 2 * B @ A).mT, atol=1e-5)


def test_what_cannot_be_is_said():
    model = small()
    with pytest.raises(ValueError, match="no layer named W_X"):
        add_lora(model, 2, 4.0, names=["W_X"])
    with pytest.raises(ValueError, match="rank is 13, but it must be from 1 to 12"):
        LoRA(model.decoder[0].self_attention.W_Q, 13, 4.0)
    add_lora(model, 2, 4.0)
    with pytest.raises(ValueError, match="has adapters already"):
        add_lora(model, 2, 4.0)
