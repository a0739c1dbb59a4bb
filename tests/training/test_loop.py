"""One loop for three models: it learns, repeats itself to the last digit, and tells what it did."""

import io
import sys

import pytest
import torch
from torch import nn

from tests.training import small
from tests.training.small import PAD, batch_of, batches_of, history_of, model_of, short, weights
from transformer_lesson import training
from transformer_lesson.model.fast import learning
from transformer_lesson.text.batches import Batch, WindowBatches
from transformer_lesson.text.pretrained import PretrainedTokenizer
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import History, label_smoothed_loss, train, validation_loss


@pytest.mark.slow
@pytest.mark.parametrize("kind", small.KINDS)
def test_the_loop_is_the_one_that_you_would_write(kind):
    config = short(4, clip=0.5, optimizer="adam")
    ours, theirs = model_of(kind), model_of(kind)
    history = train(ours, batches_of(kind), config)

    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    losses, norms = [], []
    torch.manual_seed(config.seed)
    theirs.train()
    for step, (inputs, labels) in enumerate(batches_of(kind, 4), start=1):
        optimizer.param_groups[0]["lr"] = training.learning_rate(step, config, 16)
        optimizer.zero_grad()
        with learning(theirs):
            logits = {"classifier": "classify", "token head": "predict_tokens"}.get(kind, "forward")
            logits = getattr(theirs, logits)(*inputs)
        pad_id = None if kind == "classifier" else PAD
        loss = label_smoothed_loss(logits, labels, 0.1, pad_id)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5).item())
        optimizer.step()
        losses.append(loss.item())
    assert history.losses == losses and torch.equal(weights(ours), weights(theirs))
    labels = torch.cat([batch.labels.flatten() for batch in batches_of(kind, 4)])
    assert history.tokens == (len(labels) if kind == "classifier" else (labels != PAD).sum())
    assert history.gradient_norms == norms and max(norms) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", small.KINDS)
def test_the_same_seed_gives_the_same_curve_to_the_last_digit(kind, precision):
    def curve(seed):
        torch.rand(seed)  # whatever was drawn before makes no difference
        model, history = small.run(short(precision=precision, seed=seed), kind=kind)
        return history, weights(model)

    (first, first_weights), (again, again_weights), (other, _) = curve(3), curve(3), curve(4)
    assert first == again and torch.equal(first_weights, again_weights)
    assert first.losses != other.losses  # dropout is on


def test_every_label_counts_of_classes_though_one_has_the_pads_number_and_without_a_pad_id():
    batch = batch_of("classifier")
    assert PAD in batch.labels
    seen = train(model_of("classifier"), [batch], short(1))
    assert seen.tokens == len(batch.labels)
    ids = torch.arange(12) % 5
    model = model_of("language model", pad_id=None)
    history = train(model, WindowBatches(ids.tolist(), 4, 6), short(2))
    assert history.tokens == 2 * 4 * 6


@pytest.mark.slow
def test_bfloat16_is_for_the_products_only():
    model, seen = model_of("translator", dropout=0.0), {}
    model.projection.register_forward_hook(lambda _m, _i, out: seen.update(logits=out.dtype))
    history = train(model, batches_of("translator"), short(precision="bfloat16"))
    exact = history_of(short(), dropout=0.0)
    assert seen["logits"] == torch.bfloat16
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert history.losses != exact.losses
    assert history.losses == pytest.approx(exact.losses, rel=0.02)


def test_on_step_is_told_after_each_step():
    reports, modes = [], []

    def note(report):
        reports.append(report)
        modes.append(report.model.training)

    model, history = small.run(short(5), note, [batch_of("translator")], validate_every=2)
    assert [report.step for report in reports] == [1, 2, 3, 4, 5]
    assert [report.loss for report in reports] == history.losses
    assert [report.learning_rate for report in reports] == history.learning_rates
    assert [report.gradient_norm for report in reports] == history.gradient_norms
    told = [(report.step, report.validation) for report in reports if report.validation]
    assert told == history.validation and [step for step, _ in told] == [2, 4, 5]
    assert all(report.model is model and report.tokens_per_second > 0 for report in reports)
    assert modes == [False] * 5 and not model.training
    assert history.learning_rates == [
        training.learning_rate(step, short(5), 16) for step in range(1, 6)
    ]
    assert history.tokens > 0 and history.seconds > 0


@pytest.mark.slow
def test_validation_changes_nothing_and_batches_begin_again_when_they_end():
    batches, once = batches_of("translator", 3), history_of(short())
    validated = history_of(short(), validation=batches[:2], validate_every=1)
    assert validated.losses == once.losses and len(validated.validation) == 6
    twice, written_out = (train(model_of("translator"), b, short()) for b in (batches, 2 * batches))
    assert twice == written_out
    history = History(losses=[5.0, 1.25], validation=[(2, 1.5)])
    assert repr(history) == "History(2 steps, loss 5.000 to 1.250, validation 1.500)"
    assert repr(History()) == "History(0 steps)"


@pytest.mark.parametrize("mode", [True, False])
def test_validation_is_the_mean_over_all_labels_without_dropout_and_smoothing(mode):
    first, second = batches_of("translator", 2)
    batches = [first, Batch(tuple(ids[:1] for ids in second.inputs), second.labels[:1])]
    model = model_of("translator", dropout=0.5).train(mode)
    before, state, gradients = weights(model), torch.get_rng_state(), []
    hook = model.logits.register_forward_hook(
        lambda _m, _i, out: gradients.append(out.requires_grad)
    )
    loss = validation_loss(model, batches)
    hook.remove()
    assert model.training is mode and torch.equal(torch.get_rng_state(), state)
    assert torch.equal(weights(model), before)
    assert gradients == [False] * 2

    model.eval()
    logits = torch.cat([model(*batch.inputs).flatten(0, 1) for batch in batches])
    labels = torch.cat([batch.labels.flatten() for batch in batches])
    assert loss == pytest.approx(label_smoothed_loss(logits, labels, 0.0, PAD).item(), rel=1e-5)


def test_validation_leaves_every_part_in_its_mode_whatever_happens():
    model = model_of("translator").train()
    model.encoder.eval()
    modes = [part.training for part in model.modules()]
    validation_loss(model, batches_of("translator", 1))
    assert [part.training for part in model.modules()] == modes
    outside = Batch((torch.tensor([[99]]), torch.tensor([[1]])), torch.tensor([[1]]))
    with pytest.raises(ValueError, match="token id 99 is outside"):
        validation_loss(model, [outside])
    assert [part.training for part in model.modules()] == modes
    with pytest.raises(ValueError, match="there are no batches to measure the loss on"):
        validation_loss(model, [])


@pytest.mark.parametrize(
    ("part", "factor", "message"),
    [
        ("loss", "nan", "the loss at step 3 is nan: try a learning"),
        ("gradient", "nan", "the gradient's length at step 3 is"),
        ("gradient", "inf", "the gradient's length at step 3 is"),
    ],
)
@pytest.mark.parametrize("clip", [1.0, None])
def test_a_loss_or_gradient_that_is_no_number_stops_before_the_update(part, factor, message, clip):
    model, kept = model_of("translator"), []

    def spoil(*given):
        return given[-1] * float(factor) if len(kept) == 2 else given[-1]

    if part == "loss":
        model.logits.register_forward_hook(spoil)
    else:
        model.encoder[0].norm_1.weight.register_hook(spoil)
    with pytest.raises(training.TrainingDiverged, match=message) as found:
        train(
            model, batches_of("translator"), short(clip=clip), lambda _: kept.append(weights(model))
        )
    assert isinstance(found.value, FloatingPointError) and "as of step 2" in str(found.value)
    assert found.value.history.steps == 2 and torch.equal(weights(model), kept[-1])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
def test_a_terminal_sees_a_bar_and_a_log_does_not(monkeypatch):
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        monkeypatch.setattr(sys, "stderr", stream)
        small.run(short(40))
    assert all(part in terminal.getvalue() for part in ("40/40", "loss ", "tokens/s", "<00:00"))
    assert log.getvalue() == ""
    # the last one was no terminal


PRETRAINED = PretrainedTokenizer(WordTokenizer.train(["a"]).as_library(), {})
CHANGED = model_of("translator")
CHANGED.encoder[1].feed_forward.W_1 = nn.Linear(16, 3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"batches": []}, "there are no batches"),
        ({"batches": iter(batches_of("translator", 3))}, "there are no batches, or none are left"),
        ({"validation": []}, "validation is a list, but it must be a list of one batch or more"),
        ({"validation": WindowBatches([1, 2, 3, 4], 1, 2)}, "validation is a WindowBatches, but"),
        ({"validate_every": 0}, "validate_every is 0, but it must be at least 1 step"),
        ({"checkpoint_every": -1}, "checkpoint_every is -1, but it must be at least 1 step"),
        ({"checkpoint": "no/such/folder/run"}, "folder no/such/folder does not exist; create it"),
        ({"checkpoint": "."}, "is a folder: add the name of a file in it"),
        ({"tokenizer": PRETRAINED}, "kept in the file that it came from: save the model alone"),
        ({"model": CHANGED}, "encoder.1.feed_forward.W_1.weight is not what the model's config"),
    ],
)
def test_bad_input_and_what_cannot_be_saved_are_refused(arguments, sentence, tmp_path):
    steps, given = [], {"model": model_of("translator"), "checkpoint": tmp_path / "run"}
    given |= {"batches": batches_of("translator"), "config": short(), "on_step": steps.append}
    with pytest.raises(ValueError, match=sentence):
        train(**given | arguments)
    assert len(steps) == 3 * ("none are left" in sentence)
