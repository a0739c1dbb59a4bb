"""`precision="auto"` takes the faster one, and learns what that one learns to the last digit."""

import pytest
import torch

from tests.training import small
from tests.training.small import batch_of, batches_of, history_of, model_of, run, short, weights
from transformer_lesson.training import loop, precision, resume
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


@pytest.mark.usefixtures("unchecked")
def test_a_loss_has_one_precision():
    with pytest.raises(ValueError, match="precision is 'auto', but here it must be"):
        batch_loss(model_of("translator"), batch_of("translator"), "auto")
