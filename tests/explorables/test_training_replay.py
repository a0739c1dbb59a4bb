"""Replays of a training run: what is recorded, and every state of the picture."""

import io
import math
import warnings
from itertools import product

import pytest
import torch
from PIL import Image

from tests.explorables.tiny_models import translator
from transformer_lesson.explorables import ReplayRecorder, TrainingReplay
from transformer_lesson.explorables.training_replay import (
    Snapshot,
    cross_attention,
    matched,
    render_training_replay,
    strongest_hits,
)
from transformer_lesson.generation import generate
from transformer_lesson.model.hooks import record
from transformer_lesson.text.batches import TranslationBatches
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer
from transformer_lesson.training import StepReport, train
from transformer_lesson.training.config import TrainConfig

PAIR = Pair(
    "the cat sees the dog .",
    "die Katze sieht den Hund .",
    tuple((i, i) for i in range(6)),
)


def report(step, model, loss=1.0):
    return StepReport(step, loss, 0.0, 0.0, 0.0, None, model)


def snapshot(step=1, loss=1.0, n_queries=3, n_keys=4, **named) -> Snapshot:
    torch.manual_seed(step)
    weights = torch.rand(2, 3, n_queries, n_keys).softmax(-1)
    queries, keys = [f"q{i}" for i in range(n_queries)], [f"k{i}" for i in range(n_keys)]
    return Snapshot(step, loss, weights, queries, keys, **named)


def test_looking_leaves_a_model_in_training_as_it_was():
    model, _ = translator()
    model.train()
    ids = torch.tensor([[4, 5, 2]])
    first, second = (cross_attention(model, ids, ids) for _ in range(2))
    assert model.training and not first.requires_grad
    torch.testing.assert_close(first, second)  # no dropout


@pytest.mark.slow
def test_snapshots_are_taken_when_asked_for_with_the_mean_loss_between():
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR, every=3)
    for step in range(1, 9):
        recorder(report(step, model, loss=float(step)))
    assert [(one.step, one.loss) for one in recorder.snapshots] == [(1, 1.0), (3, 2.5), (6, 5.0)]


@pytest.mark.slow
def test_a_snapshot_holds_what_the_model_writes_and_where_it_looks():
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR)
    recorder(report(1, model))
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


def test_true_cells_have_the_german_word_as_row():
    _, tokenizer = translator()
    pair = Pair("the cat sees", "sieht die Katze", ((0, 1), (1, 2), (2, 0)))
    recorder = ReplayRecorder(tokenizer, pair)
    recorder(report(1, translator()[0]))
    assert recorder.snapshots[0].true_cells == [(1, 0), (2, 1), (0, 2)]


def test_pieces_of_words_have_no_true_cells():
    tokenizer = BytePairTokenizer.train([PAIR.source, PAIR.target], 270)
    assert ReplayRecorder(tokenizer, PAIR)._true_cells == []


@pytest.mark.slow
def test_recording_does_not_change_the_training():
    model, tokenizer = translator()
    batches, config = TranslationBatches([PAIR], tokenizer, 1), TrainConfig(steps=6)
    without = train(model, batches, config).losses
    model, tokenizer = translator()
    recorder = ReplayRecorder(tokenizer, PAIR, every=2)
    assert train(model, batches, config, on_step=recorder).losses == without
    assert [one.step for one in recorder.snapshots] == [1, 2, 4, 6]
    shown = TrainingReplay(recorder.snapshots)
    assert shown.rendering.text.startswith("Step 6 of 6")


def test_every_is_at_least_one():
    with pytest.raises(ValueError, match="every is 0"):
        ReplayRecorder(translator()[1], PAIR, every=0)


@pytest.mark.parametrize(
    "written, expected, right",
    [
        ("a b c", "a b c", [True] * 3),
        ("a x c", "a b c", [True, False, True]),
        ("b c", "a b c", [True, True]),
        ("x a b", "a b", [False, True, True]),
        ("", "a", []),
        ("a a a", "a", [True, False, False]),
        ("a b", "", [False, False]),
    ],
)
def test_right_words_are_found_also_after_a_missing_one(written, expected, right):
    assert matched(written.split(), expected.split()) == right


def test_a_row_hits_if_its_strongest_weight_is_a_true_one():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    assert strongest_hits(weights, [(1, 1), (0, 2), (0, 0)]) == [True, False]
    assert strongest_hits(weights, []) == []


def test_the_text_says_what_is_drawn():
    taken = snapshot(40, 0.5, true_cells=[(0, 0)], written=["a", "x"], expected=["a", "b"])
    weights = taken.weights.clone()
    weights[1, 2, 0] = torch.tensor([0.7, 0.1, 0.1, 0.1])
    weights[1, 0, 0] = torch.tensor([0.1, 0.7, 0.1, 0.1])
    taken = taken._replace(weights=weights)
    text = render_training_replay([taken], 0, 1, 2).text
    assert text == (
        "Step 40 of 40, loss 0.5. Written: “a x”. Expected: “a b”. Layer 1, head 2: the strongest "
        "weight falls on a true word in 1 of 1 rows."
    )
    assert "in 0 of 1 rows" in render_training_replay([taken], 0, 1, 0).text


def test_a_run_without_text_is_replayed_too():
    snapshots = [snapshot(step, 1 / step, 30, 30) for step in (1, 5, 9)]
    text = render_training_replay(snapshots, 1, 0, None).text
    assert text == "Step 5 of 9, loss 0.2. Layer 0, the mean of the heads."


@pytest.mark.slow
@pytest.mark.parametrize("n_queries, n_keys", [(1, 1), (3, 40), (40, 3), (64, 64), (600, 700)])
def test_any_size_fits_the_picture(n_queries, n_keys):
    taken = [snapshot(step, n_queries=n_queries, n_keys=n_keys) for step in (1, 2)]
    for index, head in product((0, 1), (None, 2)):
        drawn = render_training_replay(taken, index, 1, head)
        image = Image.open(io.BytesIO(drawn.png))
        assert image.width <= 950 and image.height < 1000


@pytest.mark.slow
def test_hostile_tokens_and_losses_are_drawn(hostile):
    words = [hostile, "$x$ 🦄", ""]
    for loss in (math.nan, math.inf, 0.0, 1e300):
        taken = snapshot(1, loss, 3, 3, true_cells=[(0, 2)], written=words, expected=words[:1])
        taken = taken._replace(query_tokens=words, key_tokens=words)
        drawn = render_training_replay([taken], 0, 0, None)
        assert drawn == render_training_replay([taken], 0, 0, None)
        assert len(drawn.text) < 2000


def test_every_control_draws_a_new_picture():
    shown = TrainingReplay([snapshot(step, 1 / step) for step in range(1, 6)])
    assert shown.values == {"number": 5, "layer": 1, "head": None}
    for name, value in {"number": 1, "layer": 0, "head": 2}.items():
        before = shown.rendering
        shown.controls[name].value = value
        assert shown.rendering.png != before.png and shown.rendering.text != before.text
    assert shown.rendering.text.startswith("Step 1 of 5")


def test_nothing_to_replay_says_what_to_do():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = TrainingReplay()
    assert "on_step=recorder" in shown.rendering.text
    shown.controls["layer"].value = 0
    assert repr(shown) == "TrainingReplay(number=1, layer=0, head=None)"
