"""What is put on from outside changes the time that a model takes, and nothing else."""

import pytest
import torch
from torch import nn

from tests.parity import small_config
from transformer_lesson import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.checkpoints.bert import BertTransformer
from transformer_lesson.model import fast
from transformer_lesson.model.feed_forward import FeedForward
from transformer_lesson.model.masks import CAUSAL, causal_mask


@pytest.fixture
def upcast(monkeypatch):
    """How often attention was computed in float32 instead."""
    monkeypatch.delenv("TRANSFORMER_LESSON_PLAIN", raising=False)
    calls, real = [], fast._in_float32
    monkeypatch.setattr(fast, "_in_float32", lambda *given: calls.append(1) or real(*given))
    return calls


def test_attention_learns_in_float32_where_that_is_faster_and_plain_arithmetic_is_plain(
    upcast, monkeypatch
):
    Q = torch.randn(1, 2, 3, 4, dtype=torch.bfloat16)
    fast.attention(Q, Q, Q, None)
    fast.attention(Q.float().requires_grad_(), Q.float(), Q.float(), None)
    assert not upcast
    Q.requires_grad_()
    fast.attention(Q, Q, Q, None).sum().backward()
    assert len(upcast) == 1 and Q.grad.dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert fast.attention(*[Q.detach()] * 3, None).dtype == torch.bfloat16
    assert len(upcast) == 2
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "1")
    fast.attention(Q, Q, Q, None)
    dropout = nn.Dropout(0.5)
    with fast.learning(dropout):
        assert "forward" not in vars(dropout)
    assert len(upcast) == 2


def test_other_layers_stay_and_an_error_or_an_inner_block_leaves_the_plain_way():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    with pytest.raises(ZeroDivisionError), fast.learning(model):
        with fast.learning(model):
            pass
        assert ["forward" in vars(layer) for layer in model] == [False, True]
        raise ZeroDivisionError
    assert not any("forward" in vars(layer) for layer in model)


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_is_the_formulas(learns, dtype):
    Q, K, V = (torch.randn(2, 3, 5, 8, dtype=dtype, requires_grad=learns) for _ in range(3))
    scores = (Q.float() @ K.float().mT / 8**0.5).masked_fill(~causal_mask(5), -torch.inf)
    expected = scores.softmax(-1) @ V.float()
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    for mask in (CAUSAL, causal_mask(5)):
        ours = fast.attention(Q, K, V, mask)
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.float(), expected, rtol=tolerance, atol=tolerance)


def thinned(x: torch.Tensor, p: float) -> torch.Tensor:
    dropout = nn.Dropout(p).train()
    with fast.learning(dropout):
        return dropout(x)


SHARES = [1e-6, 0.001, 0.1, 0.25, 0.5, 0.9, 0.999995]


@pytest.mark.parametrize("p", SHARES)
def test_the_share_of_zeros_is_p_and_the_mean_stays(p):
    """Also where 16 bits cannot tell p from 0 or 1: there `nn.Dropout` itself draws."""
    n = 2_000_000
    y = thinned(torch.ones(n), p)
    dropped = (y == 0).double().mean().item()
    assert abs(dropped - p) <= 6 * (p * (1 - p) / n) ** 0.5
    kept = y[y != 0]
    assert kept.numel() == 0 or torch.allclose(kept, torch.tensor(1 / (1 - p)), rtol=2e-3)


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5, 7), (2, 3, 11), (0,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_stays_is_scaled_and_the_gradient_too(shape, dtype):
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    y = thinned(x, 0.25)
    assert y.dtype == dtype and y.shape == shape
    assert set(y.detach().unique().tolist()) <= {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_the_seed_decides_and_nothing_is_dropped_in_evaluation_or_at_p_0():
    x, calm, drawn = torch.ones(50), nn.Dropout(0.5).eval(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(thinned(x, 0.5))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    with fast.learning(calm):
        assert torch.equal(calm(x), x)
    assert torch.equal(thinned(x, 0.0), x)


def test_the_feed_forward_network_drops_its_hidden_layer_when_asked():
    drops, calm = (FeedForward(small_config(feed_forward_dropout=p)).train() for p in (0.5, 0.0))
    x = torch.randn(2, 3, 12)
    for module in (drops, calm):
        with fast.learning(module):
            assert torch.equal(module(x), module(x)) == (module is calm)
    assert torch.equal(drops.eval()(x), drops(x))


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("pad_id", [None, 0])
def test_a_forward_pass_never_waits_for_the_device(pad_id, positions):
    """A tensor on the meta device has no numbers: whoever asks for one gets an error."""
    ids = torch.ones(2, 5, dtype=torch.int64, device="meta")
    config = small_config(pad_id=pad_id, positions=positions)
    models = [DecoderOnlyTransformer(config), EncoderDecoderTransformer(config)]
    models += [BertTransformer(config, 2)] if positions == "learned" else []
    for model in models:
        inputs = (ids, ids) if type(model) is EncoderDecoderTransformer else (ids,)
        model.to("meta")
        assert model.train()(*inputs).is_meta and model.eval()(*inputs).is_meta
    with pytest.raises(RuntimeError, match="meta"):
        ids.max().item()
