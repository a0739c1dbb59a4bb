"""A claim is refused where it would be unfair, and judged by new seeds and a control."""

import copy
import importlib
import math
import random

import pytest
import torch

from transformer_lesson.capstone import claim
from transformer_lesson.lessons.lesson_17.measure_claims import CLAIMS

module = importlib.import_module("transformer_lesson.capstone.claim")
FALL = CLAIMS["fall"] | {"say": lambda text: None}


@pytest.fixture
def losses(monkeypatch):
    """Make runs instant: a bowl over rates, noise by seed, and what each schedule adds."""
    added = {"cosine": 0.0, "wsd": -0.05, "constant": 0.02, "noise": 0.01, "best": 0.005}
    said = []

    def loss(side, text, rate, seed, steps):
        kind = side["schedule"]
        said.append((kind, rate, seed))
        noise = random.Random(f"{kind} {seed}").gauss(0, added["noise"])
        return 1.8 + 0.1 * math.log(rate / added["best"]) ** 2 + added[kind] + noise

    monkeypatch.setattr(module, "trained_loss", loss)
    monkeypatch.setattr(module, "_seconds", lambda *_: 0.5)
    return added, said


def test_a_true_claim_holds_from_new_seeds_at_each_sides_best_rate(losses, tmp_path):
    one = claim(**FALL)
    assert one.verdict == "held" and set(one.best.values()) == {0.005}
    assert [len(pairs) for pairs in one.pairs.values()] == [6, 6, 6]
    runs = losses[1]
    swept, compared = runs[: 3 * 4 * 2], runs[3 * 4 * 2 :]
    assert {seed for *_, seed in swept} == {0, 1}
    assert {seed for *_, seed in compared} == {2, 3, 4, 5, 6, 7}
    assert {(kind, rate) for kind, rate, _ in swept} == {
        (kind, rate) for kind in ("cosine", "wsd", "constant") for rate in one.rates
    }
    page = one.page(tmp_path / "claim.html").read_text()
    assert "<b>Held.</b>" in page and "image/png;base64" in page


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"wsd": 0.05}, "refuted"),
        ({"wsd": 0.0}, "not shown"),
        ({"wsd": -0.05, "constant": -0.05}, "the control does it, too"),
        ({"wsd": -0.03, "constant": -0.015, "noise": 0.02}, "not told apart"),
        ({"best": 1e-5}, "no optimum"),
    ],
)
def test_verdicts(losses, change, verdict):
    losses[0].update(change)
    one = claim(**FALL)
    assert one.verdict == verdict and one.why in repr(one)


def test_no_difference_is_not_refuted_and_says_what_it_would_have_missed(losses):
    losses[0].update(wsd=0.0)
    one = claim(**FALL | {"predicts": "no difference"})
    assert one.verdict == "not refuted" and f"less than {one.visible:.3f} nats" in one.why


def test_a_best_rate_on_the_edge_gives_all_sides_another_if_there_is_time(losses, monkeypatch):
    losses[0].update(best=0.05)
    said = []
    one = claim(**FALL | {"say": said.append})
    assert one.added == (0.04, 0.08) and set(one.best.values()) == {0.04}
    assert {len(losses) for losses in one.tried.values()} == {6} and one.verdict == "held"
    edges = [line for line in said if "is on the edge" in line]
    assert [line.rpartition(" ")[2] for line in edges] == ["0.04.", "0.08."]
    assert "0.04, 0.08 because" in one._repr_html_()
    monkeypatch.setattr(module._Runs, "seconds", 400.0)
    assert claim(**FALL).verdict == "no optimum"


def test_the_rule_errs_as_often_as_it_says(losses):
    losses[0].update(wsd=0.0, constant=0.0)
    rng, wrong, claims = random.Random(0), 0, 400
    for _ in range(claims):
        wrong += module.direction([rng.gauss(0, 1) for _ in range(6)]) != "no difference"
    assert 0.025 < wrong / claims < 0.08
    one = claim(**FALL)
    assert 0.0 <= one.false_alarms < 0.2
    visible, spread = one.visible, module.stdev(one.differences())
    found = [
        module.direction([rng.gauss(visible, spread) for _ in range(6)]) for _ in range(claims)
    ]
    assert found.count("higher") / claims == pytest.approx(0.8, abs=0.06)


def orthogonal_copy(model):
    model = copy.deepcopy(model)
    torch.nn.init.orthogonal_(model.embedding.weight)
    return model


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"says": " "}, "says is empty"),
        ({"predicts": "better"}, "one of lower, higher, no difference"),
        ({"change": {"schedule": "cosine"}}, "The change is the baseline again"),
        ({"change": "weight_decay"}, "change is 'weight_decay', but it must be a dict"),
        ({"control": None}, "control is None, .* What else could be the reason"),
        ({"control": {"schedule": "wsd"}}, "The control is the change again"),
        ({"control": {}}, "The control is the baseline again"),  # named or not
        ({"rates": {"baseline": (0.01,), "change": (0.01, 0.02)}}, "different rates"),
        ({"rates": (0.01, 0.02)}, "takes at least 3"),
        ({"rates": "0.01"}, "must be a list of numbers over 0 and under 1"),
        ({"seeds": 2}, "from 3 to 20"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": 0.1}, "42 runs take about 0.3 minutes"),
        ({"steps": 3}, "from 40 to 10000"),
        ({"change": {"n_layer": 3}}, "'n_layer' is no part of a side"),
        ({"change": {"norm": "rmsnorm"}}, "norm is 'rmsnorm', but it must be one of layer, rms"),
        ({"change": {"n_heads": 5}}, "divisible by n_heads = 5"),
        ({"change": {"activation": "swiglu"}}, "choose d_ff, which is 256"),
        ({"change": {"edit": 3}}, "must be a function"),
        ({"change": {"edit": orthogonal_copy}}, "the change, orthogonal_copy, the model is as it"),
        ({"change": {"n_layers": 3}}, r"The change has .* \(\+\d+%\)"),
        ({"source": "grammar"}, "holds pairs of sentences"),
        ({"source": "my_novel.txt"}, "There is no such file or folder as my_novel.txt"),
    ],
)
def test_an_unfair_comparison_is_refused_in_a_sentence(losses, wrong, sentence, unchecked):
    with pytest.raises(ValueError, match=sentence):
        claim(**FALL | wrong)
    assert losses[1] == []


def without_embedding_scale(model):
    with torch.no_grad():
        model.embedding.weight.mul_(0.1)


TYPED = {
    "RMSNorm is as good": [{"norm": "rms"}, {"norm_position": "post"}, "no difference"],
    "SwiGLU beats GELU": [{"activation": "swiglu", "d_ff": 171}, {"activation": "swish"}, "lower"],
    "Weight decay helps": [{"weight_decay": 0.1}, {"dropout": 0.1}, "lower"],
    "It starts too loud": [{"edit": without_embedding_scale}, {"clip": None}, "lower"],
}


@pytest.mark.parametrize("says", TYPED)
def test_a_claim_as_somebody_would_type_it_runs_and_its_page_says_what_differed(
    says, losses, monkeypatch, tmp_path
):
    def loss(side, text, rate, seed, steps):
        module.build(side, text, seed)(text.validation[0].inputs[0])  # built, but not trained
        return 2 + abs(rate - 0.005) + random.Random(f"{side} {seed}").gauss(0, 0.01)

    monkeypatch.setattr(module, "trained_loss", loss)
    change, control, predicts = TYPED[says]
    sides = {"baseline": {}, "change": change, "control": control}
    one = claim(says, **sides, predicts=predicts, seeds=3, say=lambda text: None)
    assert one.verdict != "no optimum"
    page = one.page(tmp_path / "claim.html").read_text(encoding="utf-8")
    assert says in page and all(name in page for name in change)


def test_a_larger_change_is_allowed_beside_an_equally_large_control(losses):
    larger = {"n_layers": 3, "schedule": "wsd"}
    one = claim(**FALL | {"change": larger, "control": {"n_layers": 3, "schedule": "constant"}})
    assert one.sizes["change"] == one.sizes["control"] > 1.2 * one.sizes["baseline"]


def test_real_runs_share_batches_and_weights_and_an_edit_changes_the_model():
    text = module.Text("manual")
    same = [module.trained_loss({"schedule": "cosine"}, text, 0.005, 3, 25) for _ in range(2)]
    assert same[0] == same[1] < 4

    def silent(model):
        model.projection.weight.data.zero_()

    assert module.build({"edit": silent}, text, 0).projection.weight.abs().max() == 0
    assert module.trained_loss({"clip": None, "optimizer": "adam"}, text, 0.9, 0, 40) > 2
