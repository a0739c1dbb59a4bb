"""Gemma's block as a formula gives what the modules give, on a small random model."""

import torch

from transformer_lesson.lessons.lesson_13.gemma_block import gemma_block, gemma_block_of, read_with
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer


def small_gemma() -> DecoderOnlyTransformer:
    sizes = {
        "vocab_size": 31,
        "d_model": 10,
        "n_heads": 4,
        "n_layers": 3,
        "d_ff": 14,
        "max_len": 40,
    }
    gemma = {"norm_position": "both", "activation": "geglu", "positions": "rotary", "norm": "rms"}
    gemma |= {"norm_epsilon": 1e-6, "n_kv_heads": 2, "head_size": 6, "qk_norm": "head"}
    gemma |= {"attention_window": 5, "layers_without_window": (2,), "rotary_base": 1e6}
    gemma |= {"window_rotary_base": 100.0, "tie_embeddings": True, "scale_embedding": True}
    gemma |= {"bias": False, "dropout": 0.0, "attention_dropout": 0.0, "pad_id": None}
    model = DecoderOnlyTransformer(ModelConfig(**sizes, **gemma)).eval()
    for name, W in model.named_parameters():
        if "norm" in name:
            W.data.uniform_(0.5, 2)
    return model


@torch.no_grad()
def test_each_block_gives_what_the_module_gives():
    model, x = small_gemma(), torch.randn(2, 13, 10)
    for i, mask in enumerate((window_mask(13, 5), window_mask(13, 5), causal_mask(13))):
        expected = model.decoder[i](x, mask)
        block = gemma_block_of(model, i)
        assert torch.allclose(gemma_block(x, block, mask, torch.arange(13)), expected, atol=1e-5)
        assert block.base == (1e6 if i == 2 else 100.0)
    assert repr(block) == (
        "GemmaBlock(d_model 10, d_head 6, d_ff 14, n_heads 4, n_kv_heads 2, base 1e+06)"
    )


@torch.no_grad()
def test_a_model_reads_with_the_function():
    model, ids = small_gemma(), torch.randint(31, (2, 13))
    expected = model(ids)[:, -1]
    assert torch.allclose(read_with(gemma_block, model, ids), expected, atol=1e-4)
    other = read_with(lambda x, *_: x, model, ids)
    assert not torch.allclose(other, expected, atol=0.1)
