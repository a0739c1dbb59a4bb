"""The model in the page computes what the package's does, at every hook point."""

import random
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.explorables.page_modules import in_node
from tests.noise.noise import switched_on
from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
    ModelConfig,
    record,
)
from transformer_lesson.checkpoints.ours import as_bytes
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_11 import induction
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import train
from transformer_lesson.training.recipes import MANUAL

CLOSE = 5e-4 if switched_on() else 1e-4  # noise moves the package's numbers, too
CACHED = 5  # one input in so many is also read token by token, which takes as long again
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


def differences(folder: Path, inputs: list[tuple[nn.Module, list[dict]]]) -> list[str]:
    """Return the hook points at which a row of a model's batches has other numbers in the page."""
    cases, points = [], []
    for number, (model, batches) in enumerate(inputs):
        file = f"{number}.safetensors"
        (folder / file).write_bytes(as_bytes(model))
        for ids in batches:
            with torch.no_grad(), record(model) as run:
                values = {"result": model(*ids.values())}
            values |= run
            for row, result in enumerate(values["result"]):
                cached = "target" in ids and row % CACHED == 0
                rows = {key: one[row].tolist() for key, one in ids.items()}
                cases.append({"model": file, "cached": cached} | rows)
                same = {"cached": result} if cached else {}  # a cache changes nothing
                points.append({key: value[row] for key, value in values.items()} | same)
    shapes, numbers = in_node("forward.js", folder, cases)
    left, other = torch.from_numpy(numbers), []
    for ours, theirs in zip(points, shapes, strict=True):
        assert {name: list(value.shape) for name, value in ours.items()} == dict(theirs)
        for name, shape in theirs:
            page, left = left[: prod(shape)].view(shape), left[prod(shape) :]
            if not torch.allclose(page, ours[name], rtol=1e-4, atol=CLOSE):
                other.append(name)
    return other


def drawn_models() -> list[tuple[nn.Module, int]]:
    draw = random.Random(0)
    return [(drawn_model(draw, number), 9) for number in range(60)]


def lessons_gpt() -> list[tuple[nn.Module, int]]:
    text = manual.split().training[:50_000]
    tokenizer = CharacterTokenizer.train([text])
    model = DecoderOnlyTransformer(ModelConfig(tokenizer.vocab_size, **MANUAL.sizes))
    windows = WindowBatches(tokenizer.encode(text), MANUAL.batch_size, MANUAL.sizes["max_len"])
    train(model, windows, replace(MANUAL.training, steps=20))
    return [(model.eval(), 24)]


def induction_model() -> list[tuple[nn.Module, int]]:
    model = induction.AttentionOnlyDecoder()
    train(model, induction.RepeatedSequences(), replace(induction.TRAINING, steps=20))
    return [(model.eval(), induction.LENGTH)]


def translator() -> list[tuple[nn.Module, int]]:
    return [(trained_translator().model, 12)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "models, batches, rows",
    [(drawn_models, 1, 1), (translator, 6, 5), (lessons_gpt, 5, 5), (induction_model, 5, 5)],
)
def test_every_hook_point_has_the_packages_numbers(tmp_path, models, batches, rows):
    draw = random.Random(batches)
    inputs = [
        (model, [drawn_inputs(draw, model, rows, longest) for _ in range(batches)])
        for model, longest in models()
    ]
    assert differences(tmp_path, inputs) == []
