"""A Llama's block in functions computes what the module computes, and refuses other models."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import record
from transformer_lesson.model.llama import llama_block, llama_block_of
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer

LLAMA = {
    **{"vocab_size": 13, "d_model": 24, "n_heads": 6, "n_kv_heads": 2, "n_layers": 3, "d_ff": 17},
    **{"max_len": 11, "dropout": 0.0, "bias": False, "norm": "rms", "norm_position": "pre"},
    **{"positions": "rotary", "rotary_base": 500.0, "activation": "swiglu"},
}
OTHERS = {"norm": "layer", "norm_epsilon": 1e-3, "norm_position": "post", "bias": True}
OTHERS |= {"positions": "sinusoidal", "activation": "relu", "attention_window": 3}


def llama(**choices) -> DecoderOnlyTransformer:
    torch.manual_seed(0)
    model = DecoderOnlyTransformer(ModelConfig(**LLAMA | choices)).eval()
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) / 3
    return model


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6, None])
def test_block_by_block_it_is_the_module(n_kv_heads):
    model, ids = llama(n_kv_heads=n_kv_heads), torch.randint(13, (2, 5))
    with record(model) as run:
        model(ids)
    x = model.embedding(ids)
    for i, module in enumerate(model.decoder):
        block = llama_block_of(module, model.config)
        x = llama_block(x, block, causal_mask(5), torch.arange(5))
        assert_close(x, run[f"decoder.{i}.output"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_a_model_with_other_choices_is_refused(name, value):
    model = llama(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, but "):
        llama_block_of(model.decoder[0], model.config)
