"""What came after 2017 is what it says: norms, gates, shared heads, windows, rotary positions."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.parity import assert_equal, drawn, randomized, sizes, small_config
from transformer_lesson.model.attention import MultiHeadAttention, repeat_kv, split_heads
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.embedding import InputEmbedding
from transformer_lesson.model.feed_forward import FeedForward, GatedFeedForward, swiglu
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.norm import make_norm, rms_norm
from transformer_lesson.model.positions import apply_rotary
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)

IDS = torch.tensor([[3, 5, 7, 11, 2, 3, 1], [4, 4, 6, 1, 2, 8, 9]])
LLAMA = {
    "norm": "rms",
    "positions": "rotary",
    "activation": "swiglu",
    "bias": False,
    "tie_embeddings": False,
}


@pytest.mark.parametrize("epsilon", [1e-6, 0.1])
def test_rms_norm_equals_pytorchs(epsilon):
    x, norm = torch.randn(2, 3, 11), randomized(nn.RMSNorm(11, eps=epsilon))
    assert_equal(rms_norm(x, norm.weight, epsilon), norm(x))
    assert_equal(rms_norm(7 * x, norm.weight, 1e-12), rms_norm(x, norm.weight, 1e-12))


def test_a_config_chooses_its_norm_and_epsilon_everywhere():
    config = small_config(norm="rms", norm_epsilon=0.3)
    norm = make_norm(config)
    assert type(norm) is nn.RMSNorm and norm.eps == 0.3
    for model in (DecoderOnlyTransformer(config), EncoderDecoderTransformer(config)):
        kinds = {type(m) for m in model.modules() if "Norm" in type(m).__name__}
        assert kinds == {nn.RMSNorm}


@drawn
@given(sizes("batch", "n", "d_model", "d_ff"))
def test_swiglu_is_the_gated_network(size):
    gated = GatedFeedForward(small_config(n_heads=1, d_model=size.d_model * 2, d_ff=size.d_ff))
    x = torch.randn(size.batch, size.n, 2 * size.d_model)
    matrices = [W.weight.T for W in (gated.W_gate, gated.W_up, gated.W_down)]
    assert_equal(swiglu(x, *matrices), gated(x))
    gate, up = x @ matrices[0], x @ matrices[1]
    assert_equal(swiglu(x, *matrices), (gate * gate.sigmoid() * up) @ matrices[2])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gelu_tanh", lambda z: F.gelu(z, approximate="tanh")),
        ("swish", lambda z: z * z.sigmoid()),
    ],
)
def test_activations_are_those_of_their_names(name, function):
    module, x = FeedForward(small_config(activation=name)), torch.randn(2, 3, 12)
    assert_equal(module(x), module.W_2(function(module.W_1(x))))


def test_repeated_heads_stand_side_by_side():
    x = torch.randn(2, 3, 5, 7)
    y = repeat_kv(x, 2)
    assert y.shape == (2, 6, 5, 7)
    assert [int((y[:, i] == x[:, i // 2]).all()) for i in range(6)] == [1] * 6
    with pytest.raises(ValueError, match="n_groups is 0"):
        repeat_kv(x, 0)


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
    assert_equal(grouped(x, x, x, causal_mask(5)), full(x, x, x, causal_mask(5)))
    assert split_heads(grouped.W_K(x), n_kv_heads).shape == (2, n_kv_heads, 5, 4)
    plain = grouped(x, x, x, causal_mask(5))
    with record(grouped) as run:
        watched = grouped(x, x, x, causal_mask(5))
    assert_equal(watched, plain)  # one is the fused kernel's, the other written out
    assert run["weights"].shape == (2, 6, 5, 5)


@pytest.mark.parametrize("n_kv_heads", [0, 4, -2])
def test_heads_that_cannot_be_grouped_are_refused(n_kv_heads):
    with pytest.raises(ValueError, match=f"n_kv_heads is {n_kv_heads}: make it a divisor of n_he"):
        MultiHeadAttention(24, 6, n_kv_heads=n_kv_heads)


def test_the_cache_keeps_only_the_shared_heads():
    model = DecoderOnlyTransformer(small_config(n_heads=6, n_kv_heads=2)).eval()
    cache = KeyValueCache(7)
    with torch.no_grad():
        model(IDS, cache=cache)
    assert {layer.keys.shape for layer in cache.layers.values()} == {(2, 2, 7, 2)}


@given(st.integers(1, 9), st.integers(1, 12))
def test_a_window_is_a_band_below_the_diagonal(n, window):
    mask = window_mask(n, window)
    for query in range(n):
        for key in range(n):
            assert mask[0, 0, query, key] == (0 <= query - key < window)


def test_a_window_sees_at_least_its_own_token():
    with pytest.raises(ValueError, match="window is 0"):
        window_mask(3, 0)


def test_a_model_with_a_window_attends_inside_it():
    model = DecoderOnlyTransformer(small_config(attention_window=3)).eval()
    with record(model) as run:
        model(IDS)
    weights = run["decoder.1.self_attention.weights"]
    assert ((weights > 0) == window_mask(7, 3)).all()


def test_an_encoder_has_no_window():
    with pytest.raises(ValueError, match="an encoder has no attention_window: leave 3 out"):
        EncoderOnlyTransformer(small_config(attention_window=3))


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 1, 3, 7, 20])
@pytest.mark.parametrize("changes", [{}, LLAMA, {"pad_id": 3}], ids=["2017", "llama", "padded"])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
@torch.no_grad()
def test_cached_equals_uncached(window, changes, n_kv_heads):
    options = {"attention_window": window, "n_kv_heads": n_kv_heads, "n_heads": 6} | changes
    model = randomized(DecoderOnlyTransformer(small_config(**options))).eval()
    cache, whole = KeyValueCache(7), model(IDS)
    steps = [model(part, cache=cache) for part in IDS.split([3, 1, 2, 1], dim=1)]
    assert_equal(torch.cat(steps, dim=1), whole)


@torch.no_grad()
def test_a_translator_with_every_option_is_cached_too():
    options = LLAMA | {"attention_window": 2, "n_kv_heads": 2, "n_heads": 6, "pad_id": 3}
    source = randomized(EncoderDecoderTransformer(small_config(**options))).eval()
    memory, cache = source.encode(IDS), KeyValueCache(7)
    whole = source.decode(IDS, memory, IDS)
    steps = [source.decode(part, memory, IDS, cache=cache) for part in IDS.split([2, 1, 4], dim=1)]
    assert_equal(torch.cat(steps, dim=1), whole)


@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_rotary_positions_equal_llamas(base):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(
        hidden_size=24, num_attention_heads=3, rope_parameters={"rope_theta": base}
    )
    Q, K, positions = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8), torch.arange(3, 8)
    cos, sin = LlamaRotaryEmbedding(config)(Q, positions[None])
    theirs = apply_rotary_pos_emb(Q, K, cos, sin)
    assert_equal(apply_rotary(Q, positions, base), theirs[0])
    assert_equal(apply_rotary(K, positions, base), theirs[1])


def test_a_models_rotary_base_is_its_configs():
    model = DecoderOnlyTransformer(small_config(positions="rotary", rotary_base=77.0))
    assert [block.self_attention.rotate.base for block in model.decoder] == [77.0, 77.0]


def test_an_embedding_need_not_scale():
    scaled = InputEmbedding(small_config())
    plain = InputEmbedding(small_config(scale_embedding=False))
    plain.load_state_dict(scaled.state_dict())
    difference = scaled(IDS) - plain(IDS)
    assert_equal(difference, (12**0.5 - 1) * scaled.weight[IDS])


def test_two_configs_may_share_one_embedding():
    source, target = small_config(pad_id=0), small_config(n_layers=1)
    shared = EncoderDecoderTransformer(source, target, share_embeddings=True)
    assert (
        shared.target_embedding.weight is shared.source_embedding.weight is shared.projection.weight
    )
    apart = EncoderDecoderTransformer(source, target)
    assert apart.target_embedding.weight is not apart.source_embedding.weight
