"""Random models and inputs, for what computes them in a page."""

import random

import torch
from torch import nn

from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
    ModelConfig,
)
from transformer_lesson.model.feed_forward import ACTIVATIONS

KINDS = (EncoderOnlyTransformer, DecoderOnlyTransformer, EncoderDecoderTransformer)


def drawn_config(draw: random.Random, **fixed) -> ModelConfig:
    n_heads, d_head = draw.choice((1, 2, 4)), draw.choice((2, 4, 6))
    drawn = {
        "vocab_size": 7,
        "d_model": n_heads * d_head,
        "n_heads": n_heads,
        "n_layers": draw.choice((1, 2)),
        "d_ff": draw.choice((5, 8)),
        "max_len": 16,
        "norm_position": draw.choice(("pre", "post")),
        "activation": draw.choice((*ACTIVATIONS, "swiglu")),
        "positions": draw.choice(("sinusoidal", "learned", "rotary")),
        "tie_embeddings": draw.random() < 0.5,
        "pad_id": draw.choice((None, 0)),
        "bias": draw.random() < 0.5,
        "norm": draw.choice(("layer", "rms")),
        "norm_epsilon": draw.choice((1e-5, 1e-3)),
        "n_kv_heads": draw.choice([None, *(n for n in (1, 2, 4) if n_heads % n == 0)]),
        "scale_embedding": draw.random() < 0.5,
        "rotary_base": draw.choice((10000.0, 100.0)),
    }
    return ModelConfig(**drawn | fixed)


def drawn_model(draw: random.Random, number: int) -> nn.Module:
    """A model of each kind in turn, the third also with two configs."""
    kind = KINDS[number % 3]
    configs = [drawn_config(draw)]
    if kind is DecoderOnlyTransformer:
        configs = [drawn_config(draw, attention_window=draw.choice((None, 2, 3)))]
    elif kind is EncoderDecoderTransformer and draw.random() < 0.5:
        n_heads = draw.choice([n for n in (1, 2) if configs[0].d_model % (2 * n) == 0])
        sizes = {"d_model": configs[0].d_model, "n_heads": n_heads, "n_kv_heads": None}
        configs.append(drawn_config(draw, **sizes))
    model = kind(*configs).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) / 2)
    return model


def drawn_inputs(draw: random.Random, model: nn.Module, rows: int, longest: int) -> dict:
    names = {EncoderOnlyTransformer: ["source"], EncoderDecoderTransformer: ["source", "target"]}
    inputs = {}
    for name in names.get(type(model), ["target"]):
        size = rows, draw.randint(1, longest)
        inputs[name] = torch.randint(model.config.vocab_size, size)
    return inputs
