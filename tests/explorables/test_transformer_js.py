"""The model in the page computes what the package's does, at every hook point."""

import json
import random
import subprocess
from pathlib import Path

import torch
from playwright._impl._driver import compute_driver_executable

from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
    ModelConfig,
    record,
)
from transformer_lesson.checkpoints import save_checkpoint
from transformer_lesson.model.feed_forward import ACTIVATIONS

NODE = compute_driver_executable()[0]  # playwright's own: no other program is needed
FORWARD = Path(__file__).with_name("forward.mjs")
SOURCE = Path(__file__).parents[2] / "transformer_lesson/explorables/web/transformer.js"
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
        sizes = {"d_model": other.d_model, "n_heads": other.n_heads, "n_kv_heads": None}
        configs = [other, drawn_config(draw, **sizes)]
    model = kind(*configs).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) / 2)
    return model


def drawn_ids(draw: random.Random) -> torch.Tensor:
    return torch.tensor([[draw.randrange(7) for _ in range(draw.randint(1, 9))]])


@torch.no_grad()
def expected(model, source: torch.Tensor, target: torch.Tensor) -> dict:
    """What passes through each hook point, and the result, of the one sentence."""
    ids = {EncoderOnlyTransformer: [source], DecoderOnlyTransformer: [target]}
    with record(model) as run:
        result = model(*ids.get(type(model), [source, target]))
    return {name: value[0] for name, value in (run | {"result": result}).items()}


def test_every_hook_point_of_every_kind_of_model(tmp_path):
    draw, cases, points = random.Random(0), [], []
    for number in range(60):
        model, source, target = drawn_model(draw, number), drawn_ids(draw), drawn_ids(draw)
        save_checkpoint(tmp_path / f"{number}.safetensors", model)
        reads = type(model) is not DecoderOnlyTransformer
        writes = type(model) is not EncoderOnlyTransformer
        case = {"model": f"{number}.safetensors"}
        case |= {"source": source[0].tolist()} if reads else {}
        cases.append(case | ({"target": target[0].tolist()} if writes else {}))
        points.append(expected(model, source, target))
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    subprocess.run([NODE, FORWARD, SOURCE, tmp_path], check=True)
    seen = json.loads((tmp_path / "seen.json").read_text())
    for ours, theirs in zip(points, seen, strict=True):
        assert ours.keys() == theirs["points"].keys()
        for name, value in ours.items():
            page = torch.tensor(theirs["points"][name]["data"], dtype=torch.float32).view(
                value.shape
            )
            assert theirs["points"][name]["shape"] == list(value.shape)
            torch.testing.assert_close(page, value, rtol=1e-4, atol=1e-4)
        if theirs["step"]:  # a cache changes nothing
            step = torch.tensor(theirs["step"], dtype=torch.float32).view(ours["result"].shape)
            torch.testing.assert_close(step, ours["result"], rtol=1e-4, atol=1e-4)
