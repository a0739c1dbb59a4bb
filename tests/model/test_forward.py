"""The forward passes in functions are the modules' ones, number for number, gradients too."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.forward import decoder_forward, encoder_forward, weights_of
from transformer_lesson.model.gpt import gpt_forward, gpt_weights_of
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

SIZES = dict(vocab_size=13, d_model=8, n_heads=2, n_layers=2, d_ff=17, max_len=11)
PAPER = SIZES | dict(norm_position="post", bias=False, dropout=0.0, pad_id=0)
GPT = SIZES | dict(norm_position="pre", bias=False, dropout=0.0, n_layers=3)
OTHERS = {"bias": True, "activation": "gelu", "norm": "rms", "norm_epsilon": 1e-3}
OTHERS |= {"scale_embedding": False, "n_kv_heads": 1, "dropout": 0.1}
PAPERS_OTHERS = OTHERS | {"norm_position": "pre", "positions": "learned", "pad_id": None}
GPTS_OTHERS = OTHERS | {"norm_position": "post", "positions": "rotary", "pad_id": 0}


def paper(**choices):
    """A model, its ids, and what functions of its weights make of them."""
    model = EncoderDecoderTransformer(ModelConfig(**PAPER | choices))
    source, target = torch.randint(1, 13, (3, 5)), torch.randint(1, 13, (3, 7))
    source[0, 3:], source[1, 1:], target[2, 4:] = 0, 0, 0
    return drawn(model), (source, target), translate, weights_of


def gpt(**choices):
    model = DecoderOnlyTransformer(ModelConfig(**GPT | choices))
    return drawn(model), (torch.randint(1, 13, (3, 7)),), gpt_forward, gpt_weights_of


def drawn(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # norms and biases, too
    return model


def translate(source, target, weights):
    return decoder_forward(target, encoder_forward(source, weights), source, weights)


each = pytest.mark.parametrize("make", [paper, gpt])


@each
@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_gradients_are_those_of_the_modules(tied, make):
    model, ids, forward, weights_of = make(tie_embeddings=tied)
    real, parameters = ids[-1] != 0, list(model.parameters())
    logits, expected = forward(*ids, weights_of(model))[real], model(*ids)[real]
    assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    ours = torch.autograd.grad(logits.square().sum(), parameters)
    theirs = torch.autograd.grad(expected.square().sum(), parameters)
    assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_an_encoder_and_a_decoder_need_equally_many_heads():
    other = ModelConfig(**PAPER | {"n_heads": 4})
    with pytest.raises(ValueError, match="the encoder has 2 heads and the decoder 4, but"):
        weights_of(EncoderDecoderTransformer(ModelConfig(**PAPER), other))


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [(paper, *item) for item in PAPERS_OTHERS.items()]
    + [(gpt, *item) for item in GPTS_OTHERS.items()],
)
def test_a_model_with_other_choices_is_refused(make, name, value):
    model, _, _, weights_of = make(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, but "):
        weights_of(model)
