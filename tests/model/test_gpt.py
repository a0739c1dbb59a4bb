"""GPT in functions is the module's, number for number, gradients too."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.gpt import GPTS, gpt_forward, gpt_weights_of
from transformer_lesson.model.transformers import DecoderOnlyTransformer

SIZES = dict(vocab_size=13, d_model=8, n_heads=2, n_layers=3, d_ff=17, max_len=11)
CHOICES = dict(norm_position="pre", bias=False, dropout=0.0)


def model_and_ids(**choices):
    torch.manual_seed(0)
    model = DecoderOnlyTransformer(ModelConfig(**SIZES | CHOICES | choices))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # norms and biases, too
    return model, torch.randint(13, (3, 7))


@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_gradients_are_those_of_the_modules(tied):
    model, ids = model_and_ids(tie_embeddings=tied)
    logits = gpt_forward(ids, gpt_weights_of(model))
    assert_close(logits, model(ids), rtol=1e-4, atol=1e-4)
    parameters = list(model.parameters())
    ours = torch.autograd.grad(logits.square().sum(), parameters)
    theirs = torch.autograd.grad(model(ids).square().sum(), parameters)
    assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_training_the_weights_trains_the_model():
    model, ids = model_and_ids()
    weights = gpt_weights_of(model)
    before = model(ids).detach()
    gpt_forward(ids, weights).square().mean().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert (model(ids) - before).abs().max() > 1e-3
    assert_close(gpt_forward(ids, weights), model(ids), rtol=1e-4, atol=1e-4)
    assert repr(weights) == "GPTWeights(3 blocks, d_model 8, n_heads 2, 13 tokens)"


@pytest.mark.parametrize(
    "name, value",
    {
        "norm_position": "post",
        "bias": True,
        "positions": "rotary",
        "activation": "gelu",
        "norm": "rms",
        "norm_epsilon": 1e-3,
        "scale_embedding": False,
        "n_kv_heads": 1,
        "dropout": 0.1,
        "pad_id": 0,
    }.items(),
)
def test_a_model_with_other_choices_is_refused(name, value):
    model, _ = model_and_ids(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, but "):
        gpt_weights_of(model)
    assert name in GPTS
