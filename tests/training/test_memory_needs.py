"""What a step must hold, or a model that writes, by formula and in the tensors really kept."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer_lesson.lessons.lesson_15.will_it_fit import MODELS
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.packed import EightBitLinear, FourBitLinear
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import TrainConfig, memory_needs
from transformer_lesson.training.loss import batch_loss
from transformer_lesson.training.memory import checkpointing_activations
from transformer_lesson.training.memory_needs import GIB, Sizes, memory_to_train, memory_to_write
from transformer_lesson.training.optimizer import make_optimizer


def small_gpt(sizes: Sizes, n_kv_heads: int | None = None) -> DecoderOnlyTransformer:
    layers, d_model, n_heads, vocab_size, max_len = sizes
    config = ModelConfig(vocab_size, d_model, n_heads, layers, 4 * d_model, max_len, dropout=0.0)
    gpts = {"positions": "learned", "activation": "gelu", "n_kv_heads": n_kv_heads}
    return DecoderOnlyTransformer(replace(config, **gpts)).train()


def kept_by_the_model(model, batch, twice=False) -> int:
    """Bytes of all tensors that wait for the backward pass, weights left out, each counted once."""
    kept, alive = {}, []
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # or its place would be given to another
        return tensor

    with (
        checkpointing_activations(model, twice),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
    ):
        batch_loss(model, batch)
    return sum(kept.values())


@pytest.mark.parametrize("sizes", [Sizes(3, 64, 4, 101, 128), Sizes(5, 32, 8, 211, 96)])
@pytest.mark.parametrize("table", [False, True])
def test_a_model_keeps_what_the_formula_says(sizes, table):
    model, n = small_gpt(sizes), sizes.max_len
    if table:  # somebody watches the weights, so they have to be there
        for block in model.decoder:
            block.self_attention.weights.register_forward_hook(lambda *_: None)
    ids = torch.randint(0, sizes.vocab_size, (4, n))
    by_formula = 4 * memory_needs.kept_for_backward(sizes, n, table) * ids.numel()
    assert kept_by_the_model(model, Batch((ids,), ids)) == pytest.approx(by_formula, rel=0.05)
    assert memory_to_train(sizes, 4, n, table=table).activations == by_formula


def test_computed_twice_the_blocks_keep_their_inputs():
    sizes = Sizes(6, 64, 4, 101, 128)
    ids = torch.randint(0, sizes.vocab_size, (2, 128))
    kept = kept_by_the_model(small_gpt(sizes), Batch((ids,), ids), twice=True) / (4 * ids.numel())
    six, five = (memory_needs.kept_for_backward(sizes._replace(n_layers=n), 128) for n in (6, 5))
    by_formula = memory_needs.kept_for_backward(sizes, 128, twice=True)
    one_block = six - five  # made in the backward pass
    assert kept == pytest.approx(by_formula - one_block, rel=0.05)


def test_weights_gradients_and_adams_averages_are_those_of_a_step():
    sizes = Sizes(3, 64, 4, 101, 128)
    model = small_gpt(sizes)
    assert count_parameters(model) == memory_needs.parameters_of(sizes)
    optimizer = make_optimizer(model, TrainConfig(steps=1))
    ids = torch.randint(0, sizes.vocab_size, (2, 128))
    batch_loss(model, Batch((ids,), ids))[0].backward()
    optimizer.step()
    averages = sum(value.nbytes for state in optimizer.state.values() for value in state.values())
    needs = memory_to_train(sizes, 2, 128)
    assert needs.weights == needs.gradients == held(model)
    assert needs.optimizer == pytest.approx(averages, rel=0.01)


def test_sixteen_bytes_a_weight_in_either_precision_shared_by_all_devices():
    sizes = MODELS["GPT-3 175B"]
    for bits in (32, 16):
        needs = memory_to_train(sizes, 1, 2048, bits)
        assert sum(needs[:3]) == 16 * memory_needs.parameters_of(sizes)
        shared = memory_to_train(sizes, 1, 2048, bits, devices=64)
        assert sum(shared[:3]) == sum(needs[:3]) / 64 and shared.activations == needs.activations
    assert 2500 < sum(needs[:3]) / GIB < 2700  # GiB
    with pytest.raises(ValueError, match="bits is 8, but"):
        memory_to_train(sizes, 1, 2048, bits=8)


WRITES = Sizes(3, 128, 8, 101, 128)


def held(module: nn.Module) -> int:
    """Bytes of everything that a module holds."""
    return sum(tensor.nbytes for tensor in [*module.parameters(), *module.buffers()])


def packed(linear: nn.Linear, bits: int) -> nn.Module:
    """A map as large as this one whose weights take so few bits."""
    if bits == 8:
        return EightBitLinear(linear.weight)
    steps, levels = linear.weight.new_zeros(linear.weight.shape), linear.weight.view(-1, 32)[:, 0]
    levels = levels.view(len(steps), -1).float()
    return FourBitLinear(steps.to(torch.uint8), levels, levels)


@pytest.mark.parametrize("bits", [32, 16, 8, 4])
@pytest.mark.parametrize("keys", memory_needs.KEYS[:3])
@torch.no_grad()
def test_a_model_that_writes_holds_what_the_formula_says(bits, keys):
    heads = {"all heads": 8, "in groups": memory_needs.groups_of(WRITES), "one head": 1}[keys]
    model, cache = small_gpt(WRITES, heads).eval(), KeyValueCache(97)
    model = model.to(torch.float32 if bits == 32 else torch.bfloat16)
    model(torch.randint(0, 101, (5, 97)), cache=cache)
    kept = sum(t.nbytes for layer in cache.layers.values() for t in (layer.keys, layer.values))
    weights = held(model)
    if bits < 16:
        linears = [m for m in model.decoder.modules() if type(m) is nn.Linear]
        weights += sum(held(packed(m, bits)) - m.weight.nbytes for m in linears)
    needs = memory_to_write(WRITES, 5, 97, bits, keys)
    assert needs.cache == kept and needs.weights == pytest.approx(weights, rel=0.05)
    shared = memory_to_write(WRITES, 5, 97, bits, keys, devices=4)
    assert shared == (needs.weights / 4, needs.cache / 4)
    if bits >= 16:  # to the byte: nothing is rounded
        assert needs.weights == weights


def test_latent_vectors_and_their_matrices_are_those_of_latent_attention():
    layers, d_model, n_heads, *_ = WRITES
    x, d_head = torch.randn(5, 97, d_model), d_model // n_heads
    W_down = torch.randn(d_model, memory_needs.kept_of_a_token(WRITES, "latent"))
    W_K, W_V = torch.randn(2, n_heads, W_down.size(1), d_head)
    c = x @ W_down
    whole, needs = (memory_to_write(WRITES, 5, 97, 32, keys) for keys in ("all heads", "latent"))
    assert needs.cache == layers * c.nbytes
    old = 2 * (d_model**2 + d_model) * 4  # W_K and W_V with their biases
    new = sum(W.nbytes for W in (W_down, W_K, W_V))
    assert whole.weights - needs.weights == layers * (old - new)
