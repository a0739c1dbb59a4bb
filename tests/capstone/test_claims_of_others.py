"""Claims as people would type them: five that run, and some that can't."""

import copy
import importlib
import random

import pytest
import torch

from transformer_lesson.capstone import claim

module = importlib.import_module("transformer_lesson.capstone.claim")


def without_embedding_scale(model):
    with torch.no_grad():
        model.embedding.weight.mul_(0.1)


def orthogonal_copy(model):
    model = copy.deepcopy(model)
    torch.nn.init.orthogonal_(model.embedding.weight)
    return model


CLAIMS = {
    "RMSNorm is as good": [{}, {"norm": "rms"}, {"norm_position": "post"}, "no difference"],
    "One head is enough": [{"n_heads": 4}, {"n_heads": 1}, {"n_heads": 2}, "no difference"],
    "SwiGLU beats GELU": [
        {},
        {"activation": "swiglu", "d_ff": 171},
        {"activation": "swish"},
        "lower",
    ],
    "Weight decay helps": [{}, {"weight_decay": 0.1}, {"dropout": 0.1}, "lower"],
    "It starts too loud": [{}, {"edit": without_embedding_scale}, {"clip": None}, "lower"],
}


def typed(says, baseline, change, control, predicts, **more):
    sides = {"baseline": baseline, "change": change, "control": control}
    return claim(says, **sides | {"predicts": predicts, "say": lambda text: None} | more)


@pytest.fixture(autouse=True)
def instant(monkeypatch):
    """Build every model, but don't train it."""

    def loss(side, text, rate, seed, steps):
        module.build(side, text, seed)(text.validation[0].inputs[0])
        return 2 + abs(rate - 0.005) + random.Random(f"{side} {seed}").gauss(0, 0.01)

    monkeypatch.setattr(module, "trained_loss", loss)
    monkeypatch.setattr(module, "_seconds", lambda *_: 0.1)


@pytest.mark.parametrize("says", CLAIMS)
def test_a_claim_as_somebody_would_type_it_runs_and_its_page_says_what_differed(says, tmp_path):
    one = typed(says, *CLAIMS[says], seeds=3)
    assert one.verdict != "no optimum"
    page = one.page(tmp_path / "claim.html").read_text(encoding="utf-8")
    assert says in page and all(name in page for name in one.sides["change"])


WEIGHTS = CLAIMS["Weight decay helps"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"change": {"norm": "rmsnorm"}}, "norm is 'rmsnorm', but it must be one of layer, rms"),
        ({"change": {"schedule": "fall"}}, "schedule is 'fall', but it must be one of linear, "),
        ({"change": {"n_heads": 5}}, "divisible by n_heads = 5"),
        ({"change": {"activation": "swiglu"}}, "choose d_ff, which is 256"),
        ({"change": "weight_decay"}, "change is 'weight_decay', but it must be a dict"),
        ({"change": {"lr": 0.1}}, "'lr' is no part of a side"),
        ({"rates": 0.01}, "rates is 0.01, but it must be a list"),
        ({"rates": [1, 2, 3]}, "must be a list of numbers from 0 to 1"),
        ({"rates": {"baseline": 0.01}}, "must be a list of numbers"),
        ({"source": "my_novel.txt"}, "There is no such file or folder as my_novel.txt"),
        ({"predicts": "better"}, "must be one of lower, higher, no difference"),
        ({"change": {"edit": orthogonal_copy}}, "the change, orthogonal_copy, the model is as it"),
        ({"control": {"weight_decay": 0.0}}, "The control is the baseline again"),
        ({"control": {"weight_decay": 0.1}}, "The control is the change again"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_a_sentence(wrong, sentence, unchecked):
    baseline, change, control, predicts = WEIGHTS
    arguments = {"baseline": baseline, "change": change, "control": control, "predicts": predicts}
    with pytest.raises(ValueError, match=sentence):
        typed("Weight decay helps", **arguments | wrong)
