"""What is put on from outside changes the time that a model takes, and nothing else."""

import threading
from itertools import chain, cycle, repeat

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.parity import small_config
from transformer_lesson import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.checkpoints.bert import BertTransformer
from transformer_lesson.model import fast
from transformer_lesson.model.feed_forward import FeedForward
from transformer_lesson.model.masks import CAUSAL, causal_mask

SHAPES = [(1, 1, 384), (384,), (8, 1, 384), (2, 5, 384), (1, 17, 384), (0, 1, 384)]


@pytest.fixture(autouse=True)
def no_race_yet(monkeypatch):
    monkeypatch.setattr(fast, "RACES", {})
    monkeypatch.delenv("TRANSFORMER_LESSON_PLAIN", raising=False)


@pytest.fixture
def always(monkeypatch):
    """Let a way of this name win every race, after one turn of each, if it was let in."""

    def choose(name: str) -> None:
        monkeypatch.setattr(fast, "SAMPLES", 1)
        monkeypatch.setattr(
            fast, "_shortest", lambda seconds: name if name in seconds else next(iter(seconds))
        )

    return choose


class Clock:
    """Time that passes only while a way works: as many seconds as its name says for the call."""

    def __init__(self, monkeypatch, **seconds):
        self.now, self.seconds, self.taken = 0.0, {k: iter(v) for k, v in seconds.items()}, []
        monkeypatch.setattr(fast, "perf_counter", lambda: self.now)

    def ways(self) -> dict:
        return {name: lambda x, name=name: self.work(name, x) for name in self.seconds}

    def work(self, name: str, x: torch.Tensor) -> torch.Tensor:
        self.taken.append(name)
        self.now += next(self.seconds[name])
        return x * 2


def run(race: fast.Race, ways: dict, times: int) -> str | None:
    for _ in range(times):
        assert race.run(ways, torch.ones(3)).tolist() == [2, 2, 2]
    return race.chosen


def test_every_call_is_one_that_is_needed(monkeypatch):
    """Each takes the next way, until every way was timed; then there is one way only."""
    clock = Clock(monkeypatch, plain=repeat(3), other=repeat(1))
    race, ways, rounds = fast.Race(), clock.ways(), 2 * fast.SAMPLES
    assert run(race, ways, 1 + rounds - 1) is None and run(race, ways, 1) == "other"
    run(race, ways, 5)
    first, timed, then = clock.taken[:2], clock.taken[2 : 2 + rounds], clock.taken[2 + rounds :]
    assert first == ["plain", "other"]  # whose numbers are compared
    assert timed == first * fast.SAMPLES and then == ["other"] * 5


def test_a_way_has_to_be_worth_it_and_to_give_the_same_numbers(monkeypatch):
    """A tie, or a win by a hair, leaves the plain way."""
    for other, chosen in ((1.0, "plain"), (0.95, "plain"), (0.8, "other")):
        clock = Clock(monkeypatch, plain=repeat(1.0), other=repeat(other))
        assert run(fast.Race(), clock.ways(), 1 + 2 * fast.SAMPLES) == chosen
    race, ways = fast.Race(), {"plain": lambda x: x * 2, "wrong": lambda x: x}
    assert run(race, ways, 2 * fast.SAMPLES) == "plain" and race.seconds.keys() == {"plain"}


@pytest.mark.parametrize("odd", [torch.nan, torch.inf, -torch.inf])
def test_one_odd_number_neither_stops_a_race_nor_lets_wrong_numbers_in(odd):
    race, x = fast.Race(), torch.tensor([1.0, odd])
    ways = {"plain": lambda x: x * 2, "same": lambda x: x + x, "wrong": lambda x: x * 3}
    assert torch.equal(race.run(ways, x).nan_to_num(), (2 * x).nan_to_num())
    assert race.seconds.keys() == {"plain", "same"}


@pytest.mark.parametrize("struck", ["plain", "other"])
def test_a_busy_moment_does_not_decide(struck, monkeypatch):
    """Neither calls that took long by chance, nor one that was short by chance."""
    seconds = {"plain": cycle([1.0]), "other": cycle([2.0])}
    ordinary = next(seconds[struck])
    seconds[struck] = cycle([ordinary, 30, 30, ordinary, ordinary, 30, 30, ordinary / 4, 30])
    clock = Clock(monkeypatch, **seconds)
    assert run(fast.Race(), clock.ways(), 1 + 2 * fast.SAMPLES) == "plain"


def test_the_ways_are_timed_again_now_and_then(monkeypatch):
    """What was right in a busy moment, or for a model in the cache, need not stay so."""
    monkeypatch.setattr(fast, "SOON", 40)
    monkeypatch.setattr(fast, "LATE", 100)
    early = 1 + fast.SAMPLES
    clock = Clock(monkeypatch, plain=repeat(1.0), other=chain(repeat(3.0, early), repeat(0.5)))
    race, ways = fast.Race(), clock.ways()
    assert run(race, ways, 1 + 40) == "plain" and clock.taken.count("other") == early
    assert run(race, ways, 1 + 2 * fast.SAMPLES) == "other"
    assert run(race, ways, 100 - 2 * fast.SAMPLES) == "other" and run(race, ways, 1) is None


def test_there_is_one_race_for_each_size_and_thread_count(monkeypatch):
    """A matrix that is multiplied again and again lies in the cache, where it does not at work."""
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(5)), nn.Linear(256, 512))
    with torch.no_grad(), fast.writing(model):
        model(torch.randn(1, 256))
    assert [race.calls for race in fast.RACES.values()] == [4, 0]  # since each began
    threads = torch.get_num_threads()
    small, large = fast.race_of("small"), fast.race_of("large")
    assert small is fast.race_of("small") is not large
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    assert fast.race_of("small") is not small


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "columns", "vector"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [*SHAPES, "transposed", "apart"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_few_rows_give_what_nn_linear_gives(name, shape, bias, dtype, always):
    """While the ways take turns, and when one was chosen."""
    always(name)
    apart = {"transposed": torch.randn(384, 3).T, "apart": torch.randn(3, 2, 384)[:, 0]}
    x = apart[shape].to(dtype) if shape in apart else torch.randn(shape, dtype=dtype)
    layer = nn.Linear(384, 512, bias=bias, dtype=dtype)
    rtol, atol = (1e-4, 1e-5) if dtype == torch.float32 else (0.02, 0.02)
    with torch.no_grad():
        expected = layer(x)
        with fast.writing(layer):
            for _ in range(6):
                ours = layer(x)
                torch.testing.assert_close(ours, expected, rtol=rtol, atol=atol)
                assert ours.is_contiguous()
    rows, ways = fast.WAYS.get(dtype, (0, {}))
    ways = list(ways)
    races = [(race.chosen, list(race.seconds)) for race in fast.RACES.values()]
    raced = 0 < x.numel() // 384 <= rows
    assert races == ([(name if name in ways else "plain", ways)] if raced else [])


@pytest.mark.parametrize("n", [1, 2, 8])
def test_columns_lie_one_after_the_other(n):
    """Where the numbers of two columns take turns in memory, MKL takes several times as long."""

    class Strides(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, given=(), named=None):
            if func is torch.ops.aten.mm.default:
                strides.append(given[1].stride())
            return func(*given, **named or {})

    strides = []
    with torch.no_grad(), Strides():
        fast._by_columns(torch.randn(n, 1, 384), torch.randn(512, 384), None)
    assert strides == [(1, 384)]


def test_small_matrices_and_other_layers_stay_and_an_error_leaves_the_plain_way():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(512, 512))
    with pytest.raises(RuntimeError), fast.writing(model):
        assert ["forward" in vars(layer) for layer in model] == [False, False, True]
        model[2](torch.randn(1, 3))
    assert not any("forward" in vars(layer) for layer in model)


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


def test_neither_learning_in_half_precision_nor_plain_arithmetic_is_timed(monkeypatch):
    Q = torch.randn(1, 2, 3, 4, dtype=torch.bfloat16, requires_grad=True)
    fast.attention(Q, Q, Q, None).sum().backward()
    assert fast.RACES == {} and Q.grad.dtype == torch.bfloat16
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "1")
    layer, dropout = nn.Linear(512, 512), nn.Dropout(0.5)
    with fast.writing(layer), fast.learning(dropout):
        assert "forward" not in vars(layer) and "forward" not in vars(dropout)
    Q = Q.detach().half()
    fast.attention(Q, Q, Q, None)
    assert fast.RACES == {}


@pytest.mark.parametrize("way", ["fused", "in float32"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_is_the_formulas(way, dtype, always):
    always(way)
    Q, K, V = (torch.randn(2, 3, 5, 8, dtype=dtype) for _ in range(3))
    scores = (Q.float() @ K.float().mT / 8**0.5).masked_fill(~causal_mask(5), -torch.inf)
    expected = scores.softmax(-1) @ V.float()
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    for mask in [CAUSAL, causal_mask(5)] * 4:
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
