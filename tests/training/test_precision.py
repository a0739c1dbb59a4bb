"""`precision="auto"` takes the faster one, and learns what that one learns to the last digit."""

from types import SimpleNamespace

import pytest
import torch

from tests.training import small
from tests.training.small import batch_of, batches_of, history_of, model_of, run, short, weights
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import loop, precision, resume, train, validation_loss
from transformer_lesson.training.loss import batch_loss


@pytest.fixture
def faster(monkeypatch):
    """Let one precision be the faster one, whatever the clock says."""

    def make(name: str) -> None:
        real = loop.seconds_of_each

        def timed(*arguments):
            return real(*arguments) | {name: 0.0}

        monkeypatch.setattr(loop, "seconds_of_each", timed)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("name", precision.PRECISIONS)
@pytest.mark.parametrize("kind", small.KINDS)
def test_the_curve_is_that_of_the_faster_precision_alone(kind, name, faster):
    faster(name)
    alone, wanted = run(short(precision=name), kind=kind)
    chosen, history = run(short(precision="auto"), kind=kind)
    assert history == wanted and history.precision == name
    assert torch.equal(weights(chosen), weights(alone))


def test_batches_that_draw_from_torch_are_the_same_too(faster):
    faster("bfloat16")

    def drawn():
        while True:
            ids = torch.randint(3, 13, (2, 5))
            yield Batch((ids,), ids)

    model = "language model"
    one, other = (train(model_of(model), drawn(), short(precision=p)) for p in ("bfloat16", "auto"))
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("name", precision.PRECISIONS)
def test_a_resumed_run_keeps_the_precision(name, faster, tmp_path):
    faster(name)
    path, keep = tmp_path / "run.safetensors", {"checkpoint_every": 3}
    whole = history_of(short(precision=name))
    with pytest.raises(ZeroDivisionError):
        run(short(precision="auto"), lambda told: 1 / (5 - told.step), checkpoint=path, **keep)
    faster("float32" if name == "bfloat16" else "bfloat16")  # as on another machine
    _, history = resume(path, batches_of("translator"))
    assert history.losses == whole.losses and history.precision == name


@pytest.mark.parametrize("slow", precision.PRECISIONS)
def test_each_is_timed_in_turns_after_a_warm_up(slow, monkeypatch):
    clock, asked = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now), []
    monkeypatch.setattr(precision, "time", clock)

    def backward(_model, _batch, config):
        asked.append(config.precision)
        warm = len(asked) > 2
        clock.now += 3.0 if config.precision == slow and warm else 2.0 if warm else 50.0

    given = model_of("translator"), batch_of("translator"), short()
    seconds = precision.seconds_of_each(*given, backward)
    assert seconds == {name: 3.0 if name == slow else 2.0 for name in precision.PRECISIONS}
    assert asked == list(precision.PRECISIONS) * (1 + precision.ROUNDS)


def test_timing_leaves_no_trace():
    model = model_of("translator")
    before, state = weights(model), torch.get_rng_state()
    seconds = precision.seconds_of_each(model, batch_of("translator"), short(), loop.backward)
    assert set(seconds) == set(precision.PRECISIONS) and min(seconds.values()) > 0
    assert torch.equal(weights(model), before) and torch.equal(torch.get_rng_state(), state)
    assert all(weight.grad is None for weight in model.parameters()) and not model.training


@pytest.mark.slow
def test_one_variable_makes_it_the_same_everywhere(monkeypatch, faster):
    faster("bfloat16")
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "1")
    plain, wanted = (history_of(short(precision=name)) for name in ("auto", "float32"))
    assert plain == wanted and plain.precision == "float32"
    assert history_of(short(precision="bfloat16")).precision == "bfloat16"
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", "0")
    assert history_of(short(precision="auto")).precision == "bfloat16"


def test_the_search_counts_as_training(monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(loop, "time", clock)

    def timed(*_arguments):
        clock.now += 0.5
        return {"float32": 1.0, "bfloat16": 2.0}

    monkeypatch.setattr(loop, "seconds_of_each", timed)
    model, batches = model_of("translator"), batches_of("translator")
    model.register_forward_hook(lambda *_: setattr(clock, "now", clock.now + 0.25))
    assert train(model, batches, short(4, precision="auto")).seconds == 0.5 + 4 * 0.25


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["auto", "bf16"])
def test_a_loss_has_one_precision(name):
    with pytest.raises(ValueError, match=f"precision is '{name}', but here it must be"):
        batch_loss(model_of("translator"), batch_of("translator"), name)
    with pytest.raises(ValueError, match="must be .* train"):
        validation_loss(model_of("translator"), batches_of("translator"), name)
