"""A Llama that runs on the learner's functions: theirs are called, and nothing else differs."""

import sys
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.exercises.test_collection import Notebook, solved
from tests.parity import randomized
from transformer_lesson.generation import generate
from transformer_lesson.mine import LLAMA_PARTS, MyLlama, parts, translation
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.llama import LLAMAS
from transformer_lesson.model.transformers import DecoderOnlyTransformer

CONFIG = ModelConfig(
    13,
    12,
    6,
    2,
    17,
    11,
    n_kv_heads=2,
    rotary_base=500.0,
    dropout=0.0,
    tie_embeddings=False,
    **LLAMAS,
)


@pytest.fixture
def model():
    return randomized(DecoderOnlyTransformer(CONFIG)).eval()


def write_all():
    for name in LLAMA_PARTS:
        Notebook().keep(name, solved(name))


def test_without_anything_written_it_is_the_model(folder, model):
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (3, 7))
    assert repr(own.parts).startswith("0 of 11 functions of a Llama's forward pass are yours")
    assert_close(own(ids), model(ids))
    assert not own.training and MyLlama.with_weights_of(model.train()).training
    cache, whole = KeyValueCache(11), model.eval()(ids)
    for new in (ids[:, :4], ids[:, 4:5], ids[:, 5:]):
        start = cache.length
        assert_close(own(new, cache), whole[:, start : start + new.size(1)])
    prompts = [[1, 2, 3], [4, 5, 6]]
    assert generate(own, prompts, 5).ids == generate(model, prompts, 5).ids


@pytest.mark.slow
def test_with_everything_written_all_of_it_is_theirs(folder, model):
    """The block of lesson 12, too, calls what came in lesson 13."""
    write_all()
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (1, 5))
    assert own.parts.yours_now() == LLAMA_PARTS
    assert repr(own.parts).startswith("11 of 11 functions")
    with called() as files:
        logits = own(ids)
    homes = {name: {Path(file).parent.name for file in files[name]} for name in LLAMA_PARTS}
    assert homes == dict.fromkeys(LLAMA_PARTS, {"my_transformer"})
    assert_close(logits, model(ids))


@contextmanager
def called():
    """Note in which files the functions are that run, by their names."""
    files = defaultdict(set)

    def note(frame, event, argument):
        files[frame.f_code.co_name].add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)


def test_a_right_function_in_double_precision_stays_theirs(folder, model):
    double = solved("rms_norm").replace("    return", "    x = x.double()\n    return", 1)
    Notebook().keep("rms_norm", double)
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (1, 5))
    assert_close(own(ids), model(ids))
    assert own.parts.yours_now() == ("rms_norm",)


def test_one_that_fails_is_told_and_ours_stands_in(folder, model):
    broken = solved("rms_norm").replace("    return", "    assert x.size(-1) != 12\n    return", 1)
    Notebook().keep("rms_norm", broken)
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (1, 5))
    assert own.parts.yours == ("rms_norm",)
    with pytest.warns(
        UserWarning, match="Ours stands in for rms_norm: `rms_norm` raised Assertion"
    ):
        logits = own(ids)
    assert_close(logits, model(ids))
    assert own.parts.count() == "0 of 11"


def test_other_models_and_names_are_refused(folder, model):
    with pytest.raises(ValueError, match="activation is 'relu', but `llama_block` knows only"):
        MyLlama.with_weights_of(DecoderOnlyTransformer(replace(CONFIG, activation="relu")))
    with pytest.raises(ValueError, match="rms_norm.* are not in the forward pass"):
        translation("the child opens the window .", rms_norm=lambda *x: x[0])
    assert parts(LLAMA_PARTS).names == LLAMA_PARTS
