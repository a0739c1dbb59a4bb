"""The forward pass in functions is the modules' one, number for number, gradients too."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.forward import PAPERS, decoder_forward, encoder_forward, weights_of
from transformer_lesson.model.transformers import EncoderDecoderTransformer

SIZES = dict(vocab_size=13, d_model=8, n_heads=2, n_layers=2, d_ff=17, max_len=11, pad_id=0)
PAPERS_CHOICES = dict(norm_position="post", bias=False, dropout=0.0)


def model_and_ids(**choices):
    torch.manual_seed(0)
    model = EncoderDecoderTransformer(ModelConfig(**SIZES | PAPERS_CHOICES | choices))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # norms and biases, too
    source, target = torch.randint(1, 13, (3, 5)), torch.randint(1, 13, (3, 7))
    source[0, 3:], source[1, 1:], target[2, 4:] = 0, 0, 0
    return model, source, target


def logits_of(source, target, weights):
    return decoder_forward(target, encoder_forward(source, weights), source, weights)


@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_gradients_are_those_of_the_modules(tied):
    model, source, target = model_and_ids(tie_embeddings=tied)
    real = target != 0
    logits = logits_of(source, target, weights_of(model))
    assert_close(logits[real], model(source, target)[real], rtol=1e-4, atol=1e-4)
    parameters = list(model.parameters())
    ours = torch.autograd.grad(logits[real].square().sum(), parameters)
    theirs = torch.autograd.grad(model(source, target)[real].square().sum(), parameters)
    assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_an_encoder_and_a_decoder_of_different_depths_and_vocabularies():
    torch.manual_seed(0)
    source_config = ModelConfig(**SIZES | PAPERS_CHOICES)
    target_config = ModelConfig(**SIZES | PAPERS_CHOICES | {"vocab_size": 19, "n_layers": 3})
    model = EncoderDecoderTransformer(source_config, target_config)
    source, target = torch.randint(1, 13, (2, 4)), torch.randint(1, 19, (2, 3))
    logits = logits_of(source, target, weights_of(model))
    assert_close(logits, model(source, target), rtol=1e-4, atol=1e-4)
    other = ModelConfig(**SIZES | PAPERS_CHOICES | {"n_heads": 4})
    with pytest.raises(ValueError, match="the encoder has 2 heads and the decoder 4, but"):
        weights_of(EncoderDecoderTransformer(source_config, other))


@pytest.mark.parametrize(
    "name, value",
    {
        "norm_position": "pre",
        "bias": True,
        "positions": "learned",
        "activation": "gelu",
        "norm": "rms",
        "norm_epsilon": 1e-3,
        "scale_embedding": False,
        "n_kv_heads": 1,
        "dropout": 0.1,
        "pad_id": None,
    }.items(),
)
def test_a_model_with_other_choices_is_refused(name, value):
    model, _, _ = model_and_ids(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, but "):
        weights_of(model)
    assert name in PAPERS or name == "pad_id"
