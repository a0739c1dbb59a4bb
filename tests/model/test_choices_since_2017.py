"""What came after 2017 is what it says: norms, gates, shared heads, windows, rotary positions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.parity import assert_equal, randomized, small_config
from transformer_lesson.model import transformers
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.feed_forward import FeedForward
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.norm import make_norm
from transformer_lesson.model.positions import apply_rotary
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

IDS = torch.tensor([[3, 5, 7, 11, 2, 3, 1], [4, 4, 6, 1, 2, 8, 9]])


def test_a_config_chooses_its_norm_epsilon_and_rotary_base_everywhere():
    config = small_config(norm="rms", norm_epsilon=0.3)
    norm = make_norm(config)
    assert type(norm) is nn.RMSNorm and norm.eps == 0.3
    for model in (DecoderOnlyTransformer(config), EncoderDecoderTransformer(config)):
        kinds = {type(m) for m in model.modules() if "Norm" in type(m).__name__}
        assert kinds == {nn.RMSNorm}
    model = DecoderOnlyTransformer(small_config(positions="rotary", rotary_base=77.0))
    assert [block.self_attention.rotate.base for block in model.decoder] == [77.0, 77.0]


@pytest.mark.parametrize(
    ("name", "function"),
    [("gelu_tanh", lambda z: F.gelu(z, approximate="tanh")), ("swish", lambda z: z * z.sigmoid())],
)
def test_activations_are_those_of_their_names(name, function):
    module, x = FeedForward(small_config(activation=name)), torch.randn(2, 3, 12)
    assert_equal(module(x), module.W_2(function(module.W_1(x))))


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_heads_equal_repeated_ones(n_kv_heads, rotary):
    rotate = (lambda x, start: apply_rotary(x, torch.arange(start, start + 5))) if rotary else None
    grouped = randomized(MultiHeadAttention(24, 6, rotate=rotate, n_kv_heads=n_kv_heads))
    full = MultiHeadAttention(24, 6, rotate=rotate)
    state = grouped.state_dict()
    for name in ("W_K.weight", "W_K.bias", "W_V.weight", "W_V.bias"):
        heads = state[name].unflatten(0, (n_kv_heads, 4))
        state[name] = heads.repeat_interleave(6 // n_kv_heads, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    x = torch.randn(2, 5, 24)
    expected = full(x, x, x, causal_mask(5))
    assert_equal(grouped(x, x, x, causal_mask(5)), expected)  # the fused kernel's
    with record(grouped) as run:
        assert_equal(grouped(x, x, x, causal_mask(5)), expected)  # written out
    assert run["weights"].shape == (2, 6, 5, 5)


def test_a_window_is_the_decoders_alone_and_attended_inside():
    model = DecoderOnlyTransformer(small_config(attention_window=3)).eval()
    with record(model) as run:
        model(IDS)
    weights = run["decoder.1.self_attention.weights"]
    assert ((weights > 0) == window_mask(7, 3)).all()
    with pytest.raises(ValueError, match="an encoder has no attention_window: leave 3 out"):
        transformers.EncoderOnlyTransformer(small_config(attention_window=3))
