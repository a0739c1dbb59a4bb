"""The flow of shapes: real forward passes, every size in the picture's words."""

from itertools import product

import pytest
import torch
from torch import nn

from transformer_lesson.explorables import ShapeFlow
from transformer_lesson.explorables.shape_flow import (
    MODELS,
    QUANTITIES,
    VOCAB_SIZE,
    Step,
    block_of,
    explain,
    render_shape_flow,
    trace,
    trace_of_sizes,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

SIZES = {"batch": 2, "n": 5, "target": 7, "d_model": 24, "n_heads": 3, "n_layers": 1}


@pytest.mark.parametrize("kind", MODELS)
def test_axes_name_the_sizes_of_every_step(kind):
    sizes = {"batch": 2, "head": 3, "d_model": 24, "d_head": 8, "d_ff": 96, "n": 5}
    sizes |= {"source": 5, "target": 7, "vocab_size": VOCAB_SIZE}
    steps = trace_of_sizes(kind, **SIZES)
    for name, shape in steps:
        axes, what = explain(steps, name)
        side = 7 if kind == "encoder-decoder" and name.startswith("decoder") else 5
        lengths = {"query": side, "key": 5 if "cross" in name else side}
        assert shape == tuple((sizes | lengths)[axis] for axis in axes.split(", ")), name
        assert what.endswith(".")


def test_cross_attention_reads_the_memory():
    steps = trace_of_sizes("encoder-decoder", **SIZES)
    shapes = dict(steps)
    assert shapes["decoder.0.cross_attention.scores"] == (2, 3, 7, 5)
    assert explain(steps, "decoder.0.cross_attention.keys")[1].startswith("memory W_K")
    assert explain(steps, "decoder.0.self_attention.keys")[1].startswith("x W_K")
    assert explain(steps, "encoder.0.output")[0] == "batch, source, d_model"
    assert explain(steps, "logits")[0] == "batch, target, vocab_size"


def test_every_description_is_used():
    names = [step.name for kind in MODELS for step in trace_of_sizes(kind, **SIZES)]
    for end in QUANTITIES:
        assert any(name.endswith(end) for name in names), end


def test_text_states_step_name_shape_and_axes():
    steps = trace_of_sizes("decoder-only", **SIZES)
    text = render_shape_flow(steps, 6).text
    assert text.startswith("Step 7 of 12, decoder.0.self_attention.weights: shape (2, 3, 5, 5)")
    assert "= (batch, head, query, key)" in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_extremes_of_every_size_are_drawn(kind):
    lengths = ((1, 1, 1), (4, 12, 12), (1, 1, 12))
    for (batch, n, target), *others in product(lengths, (12, 48), (1, 6), (1, 3)):
        steps = trace_of_sizes(kind, batch, n, target, *others)
        for step in (0, len(steps) // 2, 999):
            drawn = render_shape_flow.__wrapped__(steps, step)
            assert drawn.png.startswith(b"\x89PNG")
            shown = steps[min(step, len(steps) - 1)]
            assert f"{shown.name}: shape {shown.shape}" in drawn.text


def test_same_arguments_give_the_same_bytes():
    steps = trace_of_sizes("encoder-decoder", **SIZES)
    assert render_shape_flow.__wrapped__(steps, 9) == render_shape_flow.__wrapped__(steps, 9)


def test_blocks():
    assert block_of("decoder.0.self_attention.keys") == "decoder.0"
    assert block_of("embedding.tokens") == "embedding"
    assert block_of("logits") == "logits"


def test_traces_a_given_model():
    config = ModelConfig(vocab_size=11, d_model=6, n_heads=2, n_layers=2, d_ff=13, max_len=9)
    shown = ShapeFlow(DecoderOnlyTransformer(config), torch.zeros(1, 7, dtype=torch.long))
    shown.controls["step"].value = 999
    assert list(shown.controls) == ["step"]
    assert "logits: shape (1, 7, 11) = (batch, n, vocab_size)" in shown.rendering.text
    ids = torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)
    shown = ShapeFlow(EncoderDecoderTransformer(config), *ids, step=3)
    assert shown.controls["step"].value == 3
    assert dict(shown.steps)["decoder.1.cross_attention.weights"] == (1, 2, 4, 3)


@pytest.mark.slow
def test_names_of_any_length_and_kind_are_drawn():
    steps = (Step("<script>" * 40, (1, 2)), Step("🦄.0." + "x" * 300, (3,)), Step("$a$", ()))
    for step in range(3):
        drawn = render_shape_flow(steps, step)
        assert "no words for this quantity" in drawn.text
    tapped = nn.Sequential(nn.Linear(3, 4), HookPoint())
    assert trace(tapped, torch.zeros(2, 3)) == (Step("1", (2, 4)),)


def test_model_without_named_quantities_is_refused():
    with pytest.raises(ValueError, match="Linear has no named quantities"):
        ShapeFlow(nn.Linear(2, 2), torch.zeros(1, 2))


@pytest.mark.slow
def test_controls_change_the_sizes_and_the_number_of_steps():
    shown = ShapeFlow()
    controls = shown.controls
    assert controls["target"].disabled
    before = controls["step"].max
    controls["step"].value = before
    controls["n_layers"].value = 1
    assert controls["step"].value == controls["step"].max == before - 9
    assert "logits: shape (2, 5, 40)" in shown.rendering.text
    controls["kind"].value = "encoder-decoder"
    assert not controls["target"].disabled
    controls["step"].value = 999
    for name, value in {"batch": 4, "target": 12}.items():
        controls[name].value = value
    assert "logits: shape (4, 12, 40)" in shown.rendering.text
    controls["step"].value = 2
    for name, value in {"n": 1, "d_model": 48, "n_heads": 6}.items():
        controls[name].value = value
    assert "queries: shape (4, 6, 1, 8)" in shown.rendering.text


def test_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    trace_of_sizes.__wrapped__("decoder-only", **SIZES)
    assert torch.rand(1) == expected


def test_repr_is_short():
    assert repr(ShapeFlow()).startswith("ShapeFlow(kind='decoder-only', batch=2, n=5")
