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
    with pytest.raises(ValueError, match="rank is 13, but it must be an int from 1 to 12"):
        LoRA(model.decoder[0].self_attention.W_Q, 13, 4.0)
    with pytest.raises(ValueError, match="decoder_norm is a LayerNorm, but an adapter needs"):
        add_lora(model, 2, 4.0, names=["decoder_norm"])
    add_lora(model, 2, 4.0)
    with pytest.raises(ValueError, match="has adapters already"):
        add_lora(model, 2, 4.0)


DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.mark.parametrize("end", [merge_lora, remove_lora])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_learned_before_learns_again_and_what_was_tied_stays_tied(end, dtype):
    model = small().to(dtype)
    model.embedding.requires_grad_(False)
    learned = {name: weight.requires_grad for name, weight in model.named_parameters()}
    tied = model.projection.weight is model.embedding.weight
    add_lora(model, 2, 4.0, names=["W_Q", "W_O", "W_Q"])
    assert model(IDS).dtype == dtype
    copied = copy.deepcopy(model)
    for one in model, copied:
        end(one)
        assert {name: w.requires_grad for name, w in one.named_parameters()} == learned
        assert (one.projection.weight is one.embedding.weight) == tied
        assert one(IDS).dtype == dtype
        assert not any(layer.training for layer in one.modules())


def test_a_tied_matrix_is_not_merged_until_it_stands_alone():
    model = small()
    before = copy.deepcopy(model)
    add_lora(model, 2, 4.0, names="projection")
    torch.nn.init.normal_(model.projection.B)
    adapted = model(IDS)
    with pytest.raises(ValueError, match="shares its matrix"):
        merge_lora(model)
    assert torch.equal(model(IDS), adapted)
    model.projection.linear.weight = torch.nn.Parameter(model.projection.linear.weight.clone())
    merge_lora(model)
    assert torch.allclose(model(IDS), adapted, atol=1e-5)
    assert torch.equal(model.embedding.weight, before.embedding.weight)


def test_a_layer_that_two_places_share_gets_one_adapter():
    model = small()
    first, second = (block.self_attention for block in model.decoder)
    second.W_Q = first.W_Q
    add_lora(model, 2, 4.0, names=["W_Q"])
    assert first.W_Q is second.W_Q
    torch.nn.init.normal_(first.W_Q.B)
    adapted = model(IDS)
    merge_lora(model)
    assert first.W_Q is second.W_Q and torch.allclose(model(IDS), adapted, atol=1e-5)
