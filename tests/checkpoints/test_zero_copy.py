"""Weights that a model takes over: the same memory, and nothing shared."""

import torch
import transformers
from torch import nn

from tests.parity import small_config
from transformer_lesson import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.checkpoints.zero_copy import parameters_on_meta, take_over
from transformer_lesson.model.positions import sinusoidal_encoding


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.out.weight = self.table.weight
        self.register_buffer("sines", torch.arange(4.0))


def made():
    with parameters_on_meta():
        return Tied()


def test_a_module_is_made_without_numbers_and_none_is_drawn_for_it():
    model = made()
    assert model.table.weight.is_meta and model.sines.tolist() == [0, 1, 2, 3]
    assert not nn.Linear(2, 2).weight.is_meta  # outside of the block all is as always
    before = torch.get_rng_state()
    config = small_config(positions="learned")
    with parameters_on_meta():
        models = DecoderOnlyTransformer(config), EncoderDecoderTransformer(small_config())
        table = torch.randn(3, 4)
    assert torch.equal(before, torch.get_rng_state()) and table.shape == (3, 4)
    assert all(weight.is_meta for model in models for weight in model.parameters())
    assert torch.equal(models[1].source_embedding.positions.table, sinusoidal_encoding(7, 12))


def test_a_whole_tensor_is_taken_over_and_a_part_is_copied():
    whole, stack = torch.randn(5, 3), torch.randn(2, 5, 3)
    model = made()
    take_over(model, {"table.weight": whole})
    assert model.out.weight is model.table.weight
    assert model.table.weight.data_ptr() == whole.data_ptr() and model.out.weight.requires_grad
    model.out(model.table(torch.tensor([1]))).sum().backward()
    for part in (stack[1], torch.randn(3, 5).T):
        model = made()
        take_over(model, {"table.weight": part})
        assert torch.equal(model.table.weight, part) and model.table.weight.is_contiguous()
        assert model.table.weight.data_ptr() != part.data_ptr()
    take_over(model := made(), {"table.weight": whole.bfloat16()})
    assert model.table.weight.dtype == torch.float32


def test_a_live_model_and_its_copy_share_nothing_and_a_file_may_change_when_it_was_read(tmp_path):
    config = transformers.GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    gpt2 = transformers.GPT2LMHeadModel(config).eval()
    theirs = {tensor.data_ptr() for tensor in gpt2.state_dict().values()}
    assert theirs.isdisjoint(weight.data_ptr() for weight in from_pretrained(gpt2).parameters())
    gpt2.save_pretrained(tmp_path)
    ours, ids = from_pretrained(tmp_path), torch.arange(6)[None]
    before = ours(ids)
    with (tmp_path / "model.safetensors").open("r+b") as file:
        file.seek(-2000, 2)
        file.write(bytes(2000))
    assert torch.equal(ours(ids), before)
