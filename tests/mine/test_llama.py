"""A Llama that runs on the learner's functions: theirs are called, and nothing else differs."""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.exercises.notebook import Notebook, solved
from tests.mine.llama_config import CONFIG
from tests.parity import randomized
from transformer_lesson.generation import generate
from transformer_lesson.mine import LLAMA_PARTS, MyLlama, parts, translation
from transformer_lesson.mine.parts import LLAMA_GIVEN
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import pad_batch


@pytest.fixture
def model():
    return randomized(DecoderOnlyTransformer(CONFIG)).eval()


def test_without_anything_written_it_is_the_model(folder, model):
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (3, 7))
    assert repr(own.parts).startswith("0 of 7 functions of a Llama's forward pass are yours")
    assert_close(own(ids), model(ids))
    assert not own.training and MyLlama.with_weights_of(model.train()).training
    cache, whole = KeyValueCache(11), model.eval()(ids)
    for new in (ids[:, :4], ids[:, 4:5], ids[:, 5:]):
        start = cache.length
        assert_close(own(new, cache), whole[:, start : start + new.size(1)])
    prompts = [[1, 2, 3], [4, 5, 6]]
    assert generate(own, prompts, 5).ids == generate(model, prompts, 5).ids


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_is_read_as_the_model_reads_it(folder, side):
    model = randomized(DecoderOnlyTransformer(replace(CONFIG, pad_id=0))).eval()
    own, prompts = MyLlama.with_weights_of(model), [[1, 2, 3, 4], [5], [6, 7]]
    ids = pad_batch(prompts, 0, side=side)
    assert_close(own(ids)[ids != 0], model(ids)[ids != 0])
    assert generate(own, prompts, 5).ids == generate(model, prompts, 5).ids


@pytest.mark.slow
def test_with_everything_written_all_of_it_is_theirs(folder, model):
    """The block of lesson 12, too, calls what came in lesson 13."""
    for name in LLAMA_PARTS:
        Notebook().keep(name, solved(name))
    own, ids = MyLlama.with_weights_of(model), torch.randint(13, (1, 5))
    assert own.parts.yours_now() == LLAMA_PARTS
    assert repr(own.parts).startswith("7 of 7 functions")
    files = defaultdict(set)
    sys.setprofile(lambda frame, *_: files[frame.f_code.co_name].add(frame.f_code.co_filename))
    try:
        logits = own(ids)
    finally:
        sys.setprofile(None)
    homes = {name: {Path(file).parent.name for file in files[name]} for name in LLAMA_PARTS}
    assert homes == dict.fromkeys(LLAMA_PARTS, {"my_transformer"})
    assert_close(logits, model(ids))


def test_a_right_one_in_double_precision_stays_theirs_and_for_one_that_fails_ours_stands_in(
    folder, model
):
    def keep(line):
        changed = solved("merge_heads").replace("    return", f"    {line}\n    return", 1)
        Notebook().keep("merge_heads", changed)
        return MyLlama.with_weights_of(model)

    own, ids = keep("x = x.double()"), torch.randint(13, (1, 5))
    assert_close(own(ids), model(ids))
    assert own.parts.yours_now() == ("merge_heads",)
    own = keep("assert x.size(1) != 6")
    assert own.parts.yours == ("merge_heads",)
    told = "Ours stands in for merge_heads: `merge_heads` raised Assertion"
    with pytest.warns(UserWarning, match=told):
        assert_close(own(ids), model(ids))
    assert own.parts.count() == "0 of 7"


def test_other_models_and_names_are_refused(folder, model):
    with pytest.raises(ValueError, match="activation is 'relu', but `llama_block` knows only"):
        MyLlama.with_weights_of(DecoderOnlyTransformer(replace(CONFIG, activation="relu")))
    with pytest.raises(ValueError, match="rms_norm.* are not in the forward pass"):
        translation("the child opens the window .", rms_norm=lambda *x: x[0])
    with pytest.raises(ValueError, match="attention_scores.* are not in the forward pass"):
        parts(LLAMA_PARTS, attention_scores=lambda *x: x[0])
    assert parts(LLAMA_PARTS).names == LLAMA_PARTS


def test_functions_that_are_given_may_be_exchanged_and_count_for_nobody(folder, model):
    called = []

    def kept(name, function):
        """Return a function that notes its name."""
        return lambda *x: (called.append(name), function(*x))[1]

    ours = parts(LLAMA_PARTS).functions
    given = {name: kept(name, ours[name]) for name in LLAMA_GIVEN}
    own = MyLlama.with_weights_of(model, parts(LLAMA_PARTS, **given))
    ids = torch.randint(13, (1, 5))
    assert_close(own(ids), model(ids))
    assert set(called) == set(LLAMA_GIVEN) and own.parts.count() == "0 of 7"
