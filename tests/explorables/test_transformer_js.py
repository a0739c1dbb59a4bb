"""The model in the page computes what the package's does, at every hook point."""

import random
from dataclasses import replace
from math import prod
from pathlib import Path

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
from transformer_lesson.experiments import induction
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import train
from transformer_lesson.training.recipes import MANUAL

CLOSE = 5e-4 if switched_on() else 1e-4  # noise moves the package's numbers, too
CACHED = 5  # one input in so many is also read token by token, which takes as long again
KINDS = (EncoderOnlyTransformer, DecoderOnlyTransformer, EncoderDecoderTransformer)


def drawn_config(draw: random.Random, **fixed) -> ModelConfig:
    """A small model's choices, each of which comes up."""
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


def drawn_model(draw: random.Random, number: int) -> torch.nn.Module:
    """A model of each kind in turn, the third also with two configs."""
    kind = KINDS[number % 3]
    configs = [drawn_config(draw)]
    if kind is DecoderOnlyTransformer:
        configs = [drawn_config(draw, attention_window=draw.choice((None, 2, 3)))]
    elif kind is EncoderDecoderTransformer and draw.random() < 0.5:
        other = drawn_config(draw)
        n_heads = draw.choice([n for n in (1, 2) if other.d_model % (2 * n) == 0])
        sizes = {"d_model": other.d_model, "n_heads": n_heads, "n_kv_heads": None}
        configs = [other, drawn_config(draw, **sizes)]
    model = kind(*configs).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) / 2)
    return model


def drawn_ids(draw: random.Random, vocab_size: int, rows: int, longest: int) -> torch.Tensor:
    n = draw.randint(1, longest)
    return torch.tensor([[draw.randrange(vocab_size) for _ in range(n)] for _ in range(rows)])


@torch.no_grad()
def expected(model: nn.Module, ids: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What passes through each hook point, and the result, of a batch."""
    with record(model) as run:
        result = model(*ids.values())
    return run | {"result": result}


def drawn_inputs(draw: random.Random, model: nn.Module, rows: int, longest: int) -> dict:
    """A batch of what a model reads, by name."""
    n = model.config.vocab_size
    names = {EncoderOnlyTransformer: ["source"], EncoderDecoderTransformer: ["source", "target"]}
    return {name: drawn_ids(draw, n, rows, longest) for name in names.get(type(model), ["target"])}


def differences(
    folder: Path, inputs: list[tuple[nn.Module, list[dict[str, torch.Tensor]]]]
) -> list[str]:
    """Return the hook points at which a row of a model's batches has other numbers in the page."""
    cases, points = [], []
    for number, (model, batches) in enumerate(inputs):
        file = f"{number}.safetensors"
        (folder / file).write_bytes(as_bytes(model))
        for ids in batches:
            values = expected(model, ids)
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


def test_every_hook_point_of_every_kind_of_model(tmp_path):
    draw = random.Random(0)
    models = [drawn_model(draw, number) for number in range(60)]
    assert (
        differences(
            tmp_path, [(model, [drawn_inputs(draw, model, rows=1, longest=9)]) for model in models]
        )
        == []
    )


def draws(model: nn.Module, n: int, longest: int) -> list[dict[str, torch.Tensor]]:
    """`n` inputs in batches of ten."""
    draw = random.Random(n)
    return [drawn_inputs(draw, model, rows=10, longest=longest) for _ in range(n // 10)]


def test_every_hook_point_of_the_translator(tmp_path):
    model = trained_translator().model
    assert differences(tmp_path, [(model, draws(model, 400, longest=12))]) == []


def test_every_hook_point_of_the_lessons_gpt(tmp_path):
    text = manual.split().training[:50_000]
    tokenizer = CharacterTokenizer.train([text])
    model = DecoderOnlyTransformer(ModelConfig(tokenizer.vocab_size, **MANUAL.sizes))
    windows = WindowBatches(tokenizer.encode(text), MANUAL.batch_size, MANUAL.sizes["max_len"])
    train(model, windows, replace(MANUAL.training, steps=20))
    assert differences(tmp_path, [(model.eval(), draws(model, 300, longest=24))]) == []


def test_every_hook_point_of_the_induction_model(tmp_path):
    model = induction.AttentionOnlyDecoder()
    train(model, induction.RepeatedSequences(), replace(induction.TRAINING, steps=20))
    assert (
        differences(tmp_path, [(model.eval(), draws(model, 300, longest=induction.LENGTH))]) == []
    )
