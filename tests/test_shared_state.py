"""What one part of a program does leaves the others alone: other threads, and who asks next."""

import copy
import dataclasses
import importlib
import pkgutil
import threading
from collections.abc import Callable
from types import CodeType, MappingProxyType

import pytest
import torch
from torch import nn

import transformer_lesson
from tests.parity import small_config
from transformer_lesson.checkpoints import (
    from_pretrained,
    load_checkpoint,
    save_checkpoint,
    to_transformers,
)
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.generation import generate
from transformer_lesson.lessons.lesson_03.exercises import attention_scores
from transformer_lesson.model.attention_in_blocks import attention_in_blocks
from transformer_lesson.model.fast import learning
from transformer_lesson.model.transformers import DecoderOnlyTransformer

GPT = {"positions": "learned", "activation": "gelu_tanh", "scale_embedding": False}


WORK = {
    "save": lambda model, folder: save_checkpoint(folder / "model.safetensors", model),
    "convert": lambda model, folder: to_transformers(model, folder / "library"),
    "load": lambda model, folder: load_checkpoint(folder / "model.safetensors"),
    "read": lambda model, folder: from_pretrained(folder / "library"),
    "write": lambda model, folder: generate(model, [[3]], 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_another_thread_builds_draws_and_trains_as_if_alone(work, tmp_path):
    model = DecoderOnlyTransformer(small_config(pad_id=0, **GPT)).eval()
    for made in ("save", "convert"):
        WORK[made](model, tmp_path)

    def train(rounds: int) -> list[torch.Tensor]:
        torch.manual_seed(0)
        numbers = []
        for _ in range(rounds):
            layer = nn.Linear(7, 5)
            layer(torch.randn(3, 7)).square().sum().backward()
            numbers.append(layer.weight.detach() - layer.weight.grad)
        return numbers

    expected, got = train(300), []
    thread = threading.Thread(target=lambda: got.extend(train(300)))
    thread.start()
    while thread.is_alive():
        work(model, tmp_path)
    assert len(got) == 300 and all(map(torch.equal, got, expected))


def test_a_copy_that_is_made_meanwhile_has_weights_of_its_own():
    model = DecoderOnlyTransformer(small_config(d_model=256, n_heads=2, dropout=0.5)).eval()
    ids = torch.tensor([[3, 4]])
    with learning(model), torch.no_grad():
        other = copy.deepcopy(model)
        for weight in other.parameters():
            weight.zero_()
        assert not other(ids).any() and model(ids).any()
    assert not other(ids).any() and other.train().decoder[0].self_attention.W_Q.training


def test_a_causal_text_is_read_in_blocks_on_any_device():
    Q = torch.empty(1, 2, 5, 4, device="meta")
    assert attention_in_blocks(Q, Q, Q, block_size=2, causal=True).is_meta


def cached_functions() -> dict[str, Callable]:
    """Every public function of the package that keeps what it returned, by its full name."""
    found = {}
    for module in pkgutil.walk_packages(transformer_lesson.__path__, "transformer_lesson."):
        if module.name.rpartition(".")[2] == "__main__":
            continue
        for name, function in vars(importlib.import_module(module.name)).items():
            own = getattr(function, "__module__", "") == module.name
            if own and hasattr(function, "cache_clear") and not name.startswith("_"):
                found[f"{module.name.removeprefix('transformer_lesson.')}.{name}"] = function
    return found


GIVEN = {
    "words": ["attention_scores"],
    "bundle": ["frame"],
    "as_written": [attention_scores.marked],
    "parts": [attention_scores.marked],
    "code": [attention_scores.marked],
}
GIVEN |= {"fitting_nouns": ["person"], "fitting_adjectives": ["person"]}
GIVEN |= {"renamed": [1], "trained_model": [1], "limits": ["another seed"]}
READ_ONLY = {
    "lessons.lesson_14.sick_runs.trained"
}  # whole programs, for the probes, which change nothing
FROZEN = (str, bytes, int, float, frozenset, type(None), type, range, CodeType)


def changeable(value, met: dict) -> dict:
    """Everything in a value that can be changed, by its identity."""
    if isinstance(value, FROZEN) or callable(value) and not isinstance(value, nn.Module):
        return met
    if isinstance(value, MappingProxyType | tuple):
        parts = value.values() if isinstance(value, MappingProxyType) else value
    elif dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen:
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        met[id(value)], parts = value, []
        if isinstance(value, nn.Module):
            met |= {id(weight): weight for weight in value.parameters()}
        elif isinstance(value, dict | list | set):
            parts = value.values() if isinstance(value, dict) else value
    for part in parts:
        changeable(part, met)
    return met


@pytest.mark.slow
def test_nobody_can_change_what_the_next_one_gets():
    shared = {}
    for name, function in cached_functions().items():
        if name not in READ_ONLY:
            given = GIVEN.get(function.__name__, [])
            one, other = (changeable(function(*given), {}) for _ in range(2))
            shared[name] = [type(one[key]).__name__ for key in one.keys() & other.keys()]
    assert len(shared) > 20 and {name: kinds for name, kinds in shared.items() if kinds} == {}


def test_a_translator_that_was_changed_is_nobody_elses():
    for weight in trained_translator().model.parameters():
        weight.data.zero_()
    matrices = [one for one in trained_translator().model.parameters() if one.dim() > 1]
    assert all(matrix.any() for matrix in matrices)
