"""What is put on from outside changes the time that a model takes, and nothing else."""

import threading

import pytest
import torch
from torch import nn

from tests.parity import small_config
from transformer_lesson import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.model import fast
from transformer_lesson.model.feed_forward import FeedForward
from transformer_lesson.model.masks import CAUSAL, causal_mask

SHAPES = [(1, 1, 384), (384,), (8, 1, 384), (2, 5, 384), (1, 17, 384), (0, 1, 384)]
WAYS = {"plain": nn.functional.linear, "columns": fast._by_columns, "vector": fast._by_vector}


@pytest.fixture(autouse=True)
def no_choice_yet(monkeypatch):
    monkeypatch.setattr(fast, "CHOSEN", {})
    monkeypatch.delenv("TRANSFORMER_LESSON_PLAIN", raising=False)


@pytest.fixture
def always(monkeypatch):
    """Let a way of this name win every race, if it was let in."""

    def choose(name: str) -> None:
        seconds = fast._race

        def rigged(ways, inputs):
            race = seconds(ways, inputs)
            return race._replace(chosen=name if name in race.seconds else race.chosen)

        monkeypatch.setattr(fast, "_race", rigged)

    return choose


# Few rows


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_few_rows_give_what_nn_linear_gives(name, shape, bias, dtype, always):
    always(name)
    layer, x = nn.Linear(384, 512, bias=bias, dtype=dtype), torch.randn(shape, dtype=dtype)
    with torch.no_grad():
        expected = layer(x)
        with fast.writing(layer):
            ours = layer(x)
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.02, "atol": 0.02}
    )
    torch.testing.assert_close(ours, expected, **tolerance)
    assert ours.is_contiguous()
    races = [race.chosen for race in fast.CHOSEN.values()]
    n = x.numel() // 384
    raced = 0 < n <= fast.FEW_ROWS
    assert races == ([name if name != "vector" or n == 1 else races[0]] if raced else [])


@pytest.mark.parametrize("transpose", [False, True])
def test_rows_that_are_not_contiguous_are_read_in_the_right_order(transpose, always):
    always("columns")
    layer = nn.Linear(384, 512)
    x = torch.randn(384, 3).T if transpose else torch.randn(3, 2, 384)[:, 0]
    with torch.no_grad(), fast.writing(layer):
        torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_a_way_with_other_numbers_is_never_chosen():
    ways = {"plain": lambda x: x * 2, "wrong": lambda x: x}
    x = torch.ones(3)
    assert fast.fastest("double", ways, x) is ways["plain"]
    assert list(fast.CHOSEN.values())[0].seconds.keys() == {"plain"}


def test_the_choice_is_made_once_for_each_size_and_thread_count(monkeypatch):
    raced = []
    monkeypatch.setattr(fast, "_race", lambda ways, _: raced.append(ways) or fast.Race("a", {}))
    ways, x = {"a": torch.neg}, torch.ones(1)
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    for key in ("small", "small", "large"):
        fast.fastest(key, ways, x)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    fast.fastest("small", ways, x)
    assert len(raced) == 3


def test_a_way_has_to_be_worth_it(monkeypatch):
    """A tie, or a win by a hair, leaves the plain way."""
    clock = iter(range(10**6))
    monkeypatch.setattr(fast, "perf_counter", lambda: next(clock))  # every way takes one second
    ways = {"plain": torch.neg, "other": lambda x: x * -1}
    assert fast.fastest("tie", ways, torch.ones(1)) is torch.neg


def test_small_matrices_and_other_layers_stay_as_they_are():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(512, 512))
    with fast.writing(model):
        assert ["forward" in vars(layer) for layer in model] == [False, False, True]
    assert not any("forward" in vars(layer) for layer in model)


def test_an_error_leaves_the_plain_way():
    layer = nn.Linear(512, 512)
    with pytest.raises(RuntimeError), fast.writing(layer):
        layer(torch.randn(1, 3))
    assert "forward" not in vars(layer)


def test_two_threads_write_with_one_model():
    """Their blocks overlap in every order, and each gets the numbers of the model alone."""
    layer, x = nn.Linear(512, 512).bfloat16(), torch.randn(1, 512).bfloat16()
    Q = torch.randn(1, 2, 3, 4).bfloat16()
    onednn = torch.backends.mkldnn.enabled
    with torch.no_grad():
        expected = layer(x)
    wrong, barrier = [], threading.Barrier(2)

    def write():
        barrier.wait()
        for _ in range(50):
            with torch.no_grad(), fast.writing(layer):
                fast.attention(Q, Q, Q, None)
                if not torch.allclose(layer(x), expected, atol=0.05):
                    wrong.append(1)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not wrong and "forward" not in vars(layer)
    fast.attention(Q.requires_grad_(), Q, Q, None)
    assert torch.backends.mkldnn.enabled == onednn


def test_the_environment_can_ask_for_plain_arithmetic(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "1")
    layer, dropout = nn.Linear(512, 512), nn.Dropout(0.5)
    with fast.writing(layer), fast.learning(dropout):
        assert "forward" not in vars(layer) and "forward" not in vars(dropout)
    Q = torch.randn(1, 2, 3, 4).half()
    fast.attention(Q, Q, Q, None)
    assert fast.CHOSEN == {}


# Attention


@pytest.mark.parametrize("way", ["fused", "in float32"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_is_the_formulas(way, dtype, always):
    always(way)
    Q, K, V = (torch.randn(2, 3, 5, 8, dtype=dtype) for _ in range(3))
    scores = (Q.float() @ K.float().mT / 8**0.5).masked_fill(~causal_mask(5), -torch.inf)
    expected = scores.softmax(-1) @ V.float()
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    for mask in (CAUSAL, causal_mask(5)):
        ours = fast.attention(Q, K, V, mask)
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.float(), expected, rtol=tolerance, atol=tolerance)


def test_learning_in_half_precision_is_not_timed():
    Q = torch.randn(1, 2, 3, 4, dtype=torch.bfloat16, requires_grad=True)
    fast.attention(Q, Q, Q, None).sum().backward()
    assert fast.CHOSEN == {} and Q.grad.dtype == torch.bfloat16


# Dropout


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


@pytest.mark.parametrize("lane", range(4))
def test_each_of_the_four_entries_of_a_draw_is_fair_and_independent(lane):
    """One 64-bit draw serves four entries: no lane may be biased or repeat another."""
    keep = (thinned(torch.ones(100_000, 4), 0.5) != 0).double()
    others = keep[:, [i for i in range(4) if i != lane]]
    assert abs(keep[:, lane].mean().item() - 0.5) < 0.01
    agreement = (keep[:, [lane]] == others).double().mean(dim=0)
    assert (agreement - 0.5).abs().max() < 0.01
    assert abs((keep[1:, lane] == keep[:-1, lane]).double().mean().item() - 0.5) < 0.01


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5, 7), (2, 3, 11), (0,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_stays_is_scaled_and_the_gradient_too(shape, dtype):
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    y = thinned(x, 0.25)
    assert y.dtype == dtype and y.shape == shape
    assert set(y.detach().unique().tolist()) <= {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_nothing_is_dropped_in_evaluation_or_at_p_0():
    x, calm = torch.randn(3, 5), nn.Dropout(0.5).eval()
    with fast.learning(calm):
        assert torch.equal(calm(x), x)
    assert torch.equal(thinned(x, 0.0), x)


def test_the_same_seed_drops_the_same():
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(thinned(torch.ones(50), 0.5))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_the_feed_forward_network_drops_its_hidden_layer_when_asked():
    drops, calm = (FeedForward(small_config(feed_forward_dropout=p)).train() for p in (0.5, 0.0))
    x = torch.randn(2, 3, 12)
    for module in (drops, calm):
        with fast.learning(module):
            assert torch.equal(module(x), module(x)) == (module is calm)
    assert torch.equal(drops.eval()(x), drops(x))


# Without a GPU


@pytest.mark.parametrize("pad_id", [None, 0])
def test_a_forward_pass_never_waits_for_the_device(pad_id):
    """A tensor on the meta device has no numbers: whoever asks for one gets an error."""
    ids = torch.ones(2, 5, dtype=torch.int64, device="meta")
    config = small_config(pad_id=pad_id)
    decoder = DecoderOnlyTransformer(config).to("meta")
    translator = EncoderDecoderTransformer(config).to("meta")
    for model, inputs in ((decoder, (ids,)), (translator, (ids, ids))):
        assert model.train()(*inputs).is_meta and model.eval()(*inputs).is_meta
    with pytest.raises(RuntimeError, match="meta"):
        ids.max().item()
