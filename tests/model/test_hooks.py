"""A recorded run holds what was computed, in order; replacements act; nothing stays behind."""

import pytest
import torch
from torch import nn

from tests.parity import assert_equal, randomized, small_config
from transformer_lesson.model.attention import MultiHeadAttention, masked_softmax, merge_heads
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.hooks import hook_point_names, record
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)

ATTENTION = ["queries", "keys", "values", "scores", "weights", "heads"]
IDS = torch.tensor([[3, 1, 4, 1, 5]])


def block(prefix: str, *attentions: str) -> list[str]:
    names = []
    for kind in attentions or ("self_attention",):
        after = kind if attentions else "attention"
        names += [*(f"{kind}.{name}" for name in ATTENTION), f"after_{after}"]
    return [f"{prefix}.{name}" for name in (*names, "feed_forward.hidden", "output")]


def embedding(prefix: str = "") -> list[str]:
    return [f"{prefix}embedding.tokens", f"{prefix}embedding.output"]


BOTH = ("self_attention", "cross_attention")
ENCODER = block("encoder.0") + block("encoder.1")
NAMES = {
    EncoderOnlyTransformer: embedding() + ENCODER,
    DecoderOnlyTransformer: [*embedding(), *block("decoder.0"), *block("decoder.1"), "logits"],
    EncoderDecoderTransformer: [
        *(embedding("source_") + ENCODER + embedding("target_")),
        *(block("decoder.0", *BOTH) + block("decoder.1", *BOTH) + ["logits"]),
    ],
}


def build(kind, **changes):
    return randomized(kind(small_config(**changes))).eval()


def call(model):
    two = isinstance(model, EncoderDecoderTransformer)
    return model(IDS[:, :3], IDS) if two else model(IDS)


def recorded(model, replace=None):
    with record(model, replace) as run:
        output = call(model)
    return output, run


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("kind", NAMES)
def test_names_come_in_the_order_of_computation_and_the_output_stays(kind, positions):
    model = build(kind, positions=positions, pad_id=1)
    output, run = recorded(model)
    assert list(run) == NAMES[kind]
    assert sorted(hook_point_names(model)) == sorted(NAMES[kind])
    assert_equal(output, call(model))


@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_recorded_quantities_fit_together(norm_position):
    model = build(DecoderOnlyTransformer, norm_position=norm_position, positions="rotary")
    logits, run = recorded(model)
    first, part = model.decoder[0], "decoder.0.self_attention."
    assert_equal(run["embedding.tokens"], embed(IDS, model.embedding.weight))
    Q, K = run[part + "queries"], run[part + "keys"]
    assert_equal(run[part + "scores"], Q @ K.mT / 6**0.5)
    assert_equal(run[part + "weights"], masked_softmax(run[part + "scores"], causal_mask(5)))
    assert_equal(run[part + "heads"], run[part + "weights"] @ run[part + "values"])
    x = run["embedding.output"]
    added = first.self_attention.W_O(merge_heads(run[part + "heads"]))
    after = x + added if norm_position == "pre" else first.norm_1(x + added)
    assert_equal(run["decoder.0.after_attention"], after)
    added = first.feed_forward.W_2(run["decoder.0.feed_forward.hidden"])
    output = after + added if norm_position == "pre" else first.norm_2(after + added)
    assert_equal(run["decoder.0.output"], output)
    last = model.decoder_norm(run["decoder.1.output"])
    assert_equal(run["logits"], model.projection(last))
    assert torch.equal(run["logits"], logits)


def test_recorded_tensors_are_detached_and_gradients_flow_through_a_replacement():
    output, run = recorded(build(DecoderOnlyTransformer))
    assert output.requires_grad and not any(value.requires_grad for value in run.values())
    model = build(DecoderOnlyTransformer)
    output, _ = recorded(model, {"decoder.0.output": lambda x: 2 * x})
    output.sum().backward()
    assert model.embedding.weight.grad.any() and model.decoder[0].norm_1.weight.grad.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[EncoderDecoderTransformer])
def test_a_point_patched_with_its_own_value_changes_nothing_and_ablated_much(name):
    model = build(EncoderDecoderTransformer)
    output, run = recorded(model)
    same, _ = recorded(model, {name: lambda _: run[name]})
    assert_equal(same, output)
    ablated, changed = recorded(model, {name: torch.zeros_like})
    assert (changed[name] == 0).all()
    assert (ablated - output).abs().max() > 1e-4


SHAPE = r"encoder.0.output: the replacement is {}, but it must be \(1, 5, 12\)"
NEAR = "no point named 'encoder.0.self_attention.weight'; near it: .*attention.weights"


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("encoder.0.output", lambda x: x[:, :1], SHAPE.format(r"\(1, 1, 12\)")),
        ("encoder.0.output", lambda x: None, SHAPE.format("NoneType")),
        ("encoder.0.output", lambda x: 0.0, SHAPE.format("float")),
        ("encoder.0.self_attention.weight", torch.zeros_like, NEAR),
    ],
)
def test_a_replacement_of_another_shape_or_name_is_refused(name, function, message):
    model = build(EncoderOnlyTransformer)
    with pytest.raises(ValueError, match=message):
        recorded(model, {name: function})
    assert hooks(model) == 0


def test_hooks_are_there_inside_the_block_and_gone_after_it_and_after_an_exception():
    model = build(EncoderDecoderTransformer)
    with record(model):
        assert hooks(model) == len(hook_point_names(model))
    assert hooks(model) == 0
    with pytest.raises(ZeroDivisionError), record(model):
        call(model)
        raise ZeroDivisionError
    assert hooks(model) == 0
    assert not any(block.self_attention.weights.watched for block in model.encoder)
    with record(model) as outer:  # an inner one leaves it at work
        recorded(model)
        model(IDS, IDS[:, :2])
    assert outer["logits"].shape == (1, 2, 13) and hooks(model) == 0


@pytest.mark.parametrize(
    "kind", ["forward", "forward_pre", "full_backward", "full_backward_pre", "module_forward"]
)
def test_every_kind_of_hook_on_the_weights_is_called(kind):
    """The fused kernel never makes the weights: it steps aside for whoever waits for them."""
    attention, x = MultiHeadAttention(12, 2), torch.randn(1, 3, 12, requires_grad=True)
    owner, called = nn.modules.module if kind == "module_forward" else attention.weights, []
    register = getattr(owner, f"register_{kind}_hook")
    handle = register(lambda module, *_: called.append(module))
    try:
        attention(x, x, x).sum().backward()
    finally:
        handle.remove()
    assert attention.weights in called
    assert not attention.weights.watched


def test_what_was_not_recorded_is_answered_with_what_is_near_or_what_to_do(unchecked):
    _, run = recorded(build(EncoderOnlyTransformer))
    with pytest.raises(KeyError, match="nothing recorded under 'encoder.0.outputs'; near it: "):
        run["encoder.0.outputs"]
    with pytest.raises(ValueError, match="a Linear has no hook points, so nothing of it can be"):
        with record(nn.Linear(2, 2)):
            pass
    with record(DecoderOnlyTransformer(small_config())) as run:
        pass
    with pytest.raises(KeyError, match="call the model inside .* own functions take `as_the_pack"):
        run["logits"]
