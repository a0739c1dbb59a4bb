"""Replays of a training run: what is recorded, and every number of the picture."""

import base64
import math
from itertools import product

import numpy as np
import pytest
import torch

from tests.explorables.shown import assert_refused, assert_tells
from tests.explorables.tiny_models import translator
from tests.security.hostile_texts import TEXTS
from transformer_lesson.explorables import ReplayRecorder, TrainingReplay
from transformer_lesson.generation import generate
from transformer_lesson.lessons.lesson_08 import training_replay
from transformer_lesson.lessons.lesson_08.training_replay import SIDE, Snapshot, as_sent, matched
from transformer_lesson.model.hooks import record
from transformer_lesson.ranking import first_largest
from transformer_lesson.text.batches import TranslationBatches
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer
from transformer_lesson.training import StepReport, train
from transformer_lesson.training.config import TrainConfig

CELLS = tuple((i, i) for i in range(6))
PAIR = Pair("the cat sees the dog .", "die Katze sieht den Hund .", CELLS)


def snapshot(step=1, loss=1.0, n_queries=3, n_keys=4, **named) -> Snapshot:
    torch.manual_seed(step)
    weights = torch.rand(2, 3, n_queries, n_keys).softmax(-1)
    queries, keys = [f"q{i}" for i in range(n_queries)], [f"k{i}" for i in range(n_keys)]
    return Snapshot(step, loss, weights, queries, keys, **named)


@pytest.mark.slow
def test_snapshots_have_the_mean_loss_between_them_and_the_true_cells_of_words():
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR, every=3)
    for step in range(1, 9):
        recorder(StepReport(step, float(step), 0.0, 0.0, 0.0, None, model))
    assert [(one.step, one.loss) for one in recorder.snapshots] == [(1, 1.0), (3, 2.5), (6, 5.0)]
    assert_refused("every is 0", ReplayRecorder, tokenizer, PAIR, every=0)
    pair = Pair("the cat sees", "sieht die Katze", ((0, 1), (1, 2), (2, 0)))
    true_cells = ReplayRecorder(tokenizer, pair)._true_cells  # the German word is the row
    assert true_cells == [(1, 0), (2, 1), (0, 2)]
    pieces = BytePairTokenizer.train([PAIR.source, PAIR.target], 270)
    assert ReplayRecorder(pieces, PAIR)._true_cells == []


@pytest.mark.slow
def test_a_snapshot_holds_what_the_model_writes_and_where_it_looks():
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR)
    recorder(StepReport(1, 1.0, 0.0, 0.0, 0.0, None, model))
    (taken,) = recorder.snapshots
    source = torch.tensor([[*tokenizer.encode(PAIR.source), tokenizer.eos_id]])
    target = torch.tensor([tokenizer.encode(PAIR.target, add_special=True)])
    with record(model) as run:
        model(source, target[:, :-1])
    for layer in (0, 1):
        expected = run[f"decoder.{layer}.cross_attention.weights"][0]
        torch.testing.assert_close(taken.weights[layer], expected)
    assert taken.query_tokens == taken.expected == [*PAIR.target.split(), "<eos>"]
    assert taken.key_tokens == [*PAIR.source.split(), "<eos>"]
    assert taken.true_cells == [(i, i) for i in range(6)]
    written = generate(model, source, len(taken.written)).ids[0]
    assert taken.written == [tokenizer.token(id_) for id_ in written]
    looks = [training_replay.cross_attention(model.train(), source, source) for _ in range(2)]
    assert model.training and not looks[0].requires_grad
    torch.testing.assert_close(*looks)  # no dropout


@pytest.mark.slow
def test_recording_does_not_change_the_training():
    model, tokenizer = translator()
    batches, config = TranslationBatches([PAIR], tokenizer, 1), TrainConfig(steps=6)
    without = train(model, batches, config).losses
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR, every=2)
    assert train(model, batches, config, on_step=recorder).losses == without
    assert [one.step for one in recorder.snapshots] == [1, 2, 4, 6]
    assert TrainingReplay(recorder.snapshots).number == 4


@pytest.mark.parametrize(
    "written, expected, right",
    [("a b c", "a b c", "✓✓✓"), ("a x c", "a b c", "✓✗✓"), ("b c", "a b c", "✓✓"),
     ("x a b", "a b", "✗✓✓"), ("", "a", ""), ("a a a", "a", "✓✗✗"), ("a b", "", "✗✗")],
)  # fmt: skip
def test_right_words_are_found_also_after_a_missing_one(written, expected, right):
    assert matched(written.split(), expected.split()) == [sign == "✓" for sign in right]


def units(sent: dict) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(sent["weights"]), "<u2")
    return data.reshape(sent["shape"]).astype(float)


def test_weights_travel_in_four_digits_and_it_opens_at_the_end_with_the_last_layers_mean():
    taken = snapshot(7)
    weights = taken.weights.clone()
    weights[0, 0, 0, 0] = math.nan
    sent = as_sent(taken._replace(weights=weights.requires_grad_()))
    assert units(sent)[0, 0, 0, 0] == training_replay.NO_NUMBER
    difference = np.abs(units(sent) / 10_000 - taken.weights.numpy())
    assert difference.flatten()[1:].max() <= 0.5001e-4
    shown = TrainingReplay([snapshot(step) for step in (1, 2, 3)])
    assert repr(shown) == "TrainingReplay(each=True, head=None, layer=1, number=3)"
    chosen = {"layer": 0, "head": 2, "each": False}
    assert TrainingReplay([snapshot(1)], **chosen).values == {"number": 1, **chosen}
    assert repr(TrainingReplay()) == "TrainingReplay(each=True, head=None, layer=0, number=1)"


def test_a_page_gets_less_than_a_megabyte_with_the_first_and_the_last():
    many = [snapshot(step, n_queries=16, n_keys=16) for step in range(1, 401)]
    sent = TrainingReplay(many).snapshots
    assert 100 < len(sent) < 400 and (sent[0]["step"], sent[-1]["step"]) == (1, 400)
    assert sum(len(one["weights"]) for one in sent) <= training_replay.LARGEST
    apart = np.diff([one["step"] for one in sent])
    assert apart.max() - apart.min() <= 1
    assert len(TrainingReplay(many[:100]).snapshots) == 100


def test_what_the_picture_cannot_show_is_refused():
    for message, taken in {
        rf"{SIDE + 1} by 4 tokens is too large .* {SIDE} a side": snapshot(n_queries=SIDE + 1),
        r"\(2, 3, 3, 4\) do not fit 3 query and 1 key": snapshot()._replace(key_tokens=["a"]),
        r"true cell \(3, 0\) lies outside of the 3 rows": snapshot(true_cells=[(3, 0)]),
        r"true cell \(0, -1\) lies outside": snapshot(true_cells=[(0, -1)]),
    }.items():
        assert_refused(message, TrainingReplay, [snapshot(), taken])


WORDS = ["q0", "q1", "q2"]
RUN = [
    snapshot(1, 4.5, true_cells=[(0, 1), (2, 3), (2, 0)], written=["q2", "q0"], expected=WORDS),
    snapshot(20, 1.25, true_cells=[(0, 1)], written=["q0", "x", "q2"], expected=WORDS,
             framed="the best"),
    snapshot(1000, 0.031, written=WORDS, expected=WORDS),
]  # fmt: skip


def seen(sent: dict, layer: int, head: int | None) -> tuple[list, list, list]:
    """One map, where its rows are strongest, and for each framed row whether it is in a frame."""
    chosen = units(sent)[layer].mean(0) if head is None else units(sent)[layer, head]
    weights = torch.tensor(chosen / 10_000)
    best = first_largest(weights).tolist()
    framed = sorted({query for query, _ in sent["true_cells"]})
    hits = [[query, best[query]] in sent["true_cells"] for query in framed]
    return weights.tolist(), best, hits


def all_hits(sent: dict) -> dict[tuple, list[bool]]:
    """Which framed rows look most into their frame, of each layer's mean and heads."""
    n_layers, n_heads, *_ = sent["shape"]
    maps = product(range(n_layers), (None, *range(n_heads)))
    return {(layer, head): seen(sent, layer, head)[2] for layer, head in maps}


def check_told(told: list[str], run: list[dict], now: dict, layer: int, head: int | None) -> None:
    weights, best, hits = seen(now, layer, head)
    shares = [sum(one["right"]) / len(one["expected"]) for one in run if one["expected"]]
    framed = [hits for hits in (seen(one, layer, head)[2] for one in run) if hits]
    heads = [sum(hits) for hits in all_hits(now).values() if hits]
    assert_tells(told, r"^step .*: loss ([\d.]+)", [one["loss"] for one in run])
    assert_tells(told, r"^step .*, words right ([\d.]+)", shares)
    assert_tells(
        told, r"^step .*, rows in frame ([\d.]+)", [sum(hits) / len(hits) for hits in framed]
    )
    assert_tells(told, r"^block .*: (\d) of \d rows in frame", heads)
    assert_tells(told, r"” looks at “.*”: ([\d.]+)", np.array(weights).flatten())
    assert_tells(told, r"” looks most at “.*”, ([\d.]+)", np.max(weights, axis=1))
    assert_tells(told, r"” gets ([\d.]+) of a row", np.mean(weights, axis=0))
    rows, columns = now["query_tokens"], now["key_tokens"]
    places = [f"“{rows[i]}” looks at “{columns[j]}”" for i, j in sorted(now["true_cells"])]
    assert [one.partition(": ")[0] for one in told if ", framed: " in one] == places
    assert ["outside of" not in one for one in told if " its frame" in one] == hits
    right = [one.endswith(": right") for one in told if one.startswith("written word")]
    assert right == now["right"]


def test_every_state_tells_what_its_snapshot_holds(show):
    plain = [taken._replace(written=[], expected=[]) for taken in RUN]
    page = show(TrainingReplay(RUN))
    for run in (RUN, plain):
        sent = [as_sent(taken) for taken in run]
        page.set(snapshots=sent)
        cases = list(product((1, 2, 3), (0, 1), (None, 2)))
        states = [{"number": n, "layer": layer, "head": head} for n, layer, head in cases]
        for (number, layer, head), shown in zip(cases, page.states(states), strict=True):
            now = sent[number - 1]
            check_told(shown["told"], sent, now, layer, head)
            signs = [word for word in shown["written"] if word in ("✓", "✗")]
            assert signs == ["✓" if hit else "✗" for hit in seen(now, layer, head)[2]]
            counts = {f"{sum(hits)}/{len(hits)}" for hits in all_hits(now).values() if hits}
            assert {word for word in shown["written"] if "/" in word} == counts


def test_a_step_and_a_head_are_chosen_by_click_and_key(show):
    page = show(TrainingReplay(RUN))
    step = page.named("step 20: loss")
    step.click(force=True)
    assert page.get("number") == 2 and page.title.startswith("Step 20:")
    assert {"✓ q0", "✗ x", "✓ q2"} <= {*page.written()}  # differ in more than color
    step.focus()
    assert page.press("ArrowLeft", "Enter").startswith("step 1: loss 4.5")
    assert page.get("number") == 1
    page.click("block 0, head 2")
    assert page.get("layer", "head") == [0, 2]
    page.click("block 0, mean")
    assert page.get("layer", "head") == [0, None]


def test_the_small_maps_come_and_go_and_the_large_one_stays(show):
    page = show(TrainingReplay(RUN, each=False))
    maps = [one for one in page.told() if "looks at" in one]
    assert len(maps) == 12 and not [one for one in page.told() if one.startswith("block ")]
    page.page.get_by_label("each head").check()
    assert len([one for one in page.told() if one.startswith("block ")]) == 8
    assert [one for one in page.told() if "looks at" in one] == maps
    page.page.get_by_label("each head").uncheck()
    assert not [one for one in page.told() if one.startswith("block ")]


def test_any_size_and_any_word_is_drawn(show):
    words = [*TEXTS.values(), "", "$x$ 🦄"]
    strange = snapshot(n_queries=len(words), n_keys=3, written=words * 4, expected=words,
                       framed=words[0])  # fmt: skip
    strange = strange._replace(query_tokens=words, true_cells=[(0, 2)])
    page = show(TrainingReplay([strange]), viewport={"width": 320, "height": 900})
    lost = snapshot()
    lost = lost._replace(loss=math.nan, weights=lost.weights * math.nan, true_cells=[(0, 0)])
    one, many = snapshot(n_queries=1, n_keys=1), snapshot(n_queries=SIDE, n_keys=SIDE)
    for taken in (strange, one, many, lost):
        page.set(snapshots=[as_sent(taken)], number=1)
        assert page.told() and page.title.startswith("Step 1") and page.width() <= 320
    assert "“q0” looks nowhere: its weights are no numbers" in page.told()
    assert "“q0” looks at “k0”: no number, framed: a true word" in page.told()
