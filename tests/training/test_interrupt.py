"""Ctrl-C leaves model and history as of the last full step, whenever it comes."""

import signal
import subprocess
import sys
import threading

import pytest
import torch

from tests.patience import PATIENCE
from tests.training.small import batches_of, model_of, short, weights
from transformer_lesson import files
from transformer_lesson.checkpoints import load_checkpoint
from transformer_lesson.training import TrainingInterrupted, resume, train
from transformer_lesson.training.interrupt import DeferredInterrupt


def after(steps: int):
    """Model and losses of a run that was stopped after so many of 6 steps, without a signal."""
    kept = {}
    model = model_of("translator")
    history = train(
        model,
        batches_of("translator"),
        short(6),
        on_step=lambda report: kept.setdefault(report.step, weights(report.model)),
    )
    return kept[steps], history.losses[:steps]


def press_in_batch(model):
    for number, batch in enumerate(batches_of("translator"), start=1):
        if number == 3:
            signal.raise_signal(signal.SIGINT)
        yield batch


def press_in_forward(model):
    calls = []

    def press(*_arguments):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    model.decoder[1].register_forward_hook(press)
    return batches_of("translator")


def press_in_backward(model):
    calls = []

    def press(_gradient):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    model.encoder[0].norm_1.weight.register_hook(press)
    return batches_of("translator")


@pytest.mark.slow
@pytest.mark.parametrize("press", [press_in_batch, press_in_forward, press_in_backward])
def test_the_step_under_way_is_finished_and_what_called_train_ends(press, capsys):
    model, before = model_of("translator"), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(model, press(model), short(6))
    wanted_weights, wanted_losses = after(3)
    assert model.history.interrupted and model.history.losses == wanted_losses
    assert torch.equal(weights(model), wanted_weights) and not model.training
    assert signal.getsignal(signal.SIGINT) is before
    assert isinstance(caught.value, TrainingInterrupted)
    assert caught.value.history is model.history and caught.value.model is model
    said = str(caught.value)
    assert said.startswith("Interrupted after step 3 of 6: the model and its history (model.hist")
    assert "calling train again" in said and capsys.readouterr().out == ""


@pytest.mark.slow
def test_from_on_step_with_a_checkpoint_the_run_can_go_on(tmp_path):
    def press(report):
        if report.step == 2:
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "run.safetensors"
    with pytest.raises(TrainingInterrupted) as caught:
        train(model_of("translator"), batches_of("translator"), short(6), press, checkpoint=path)
    assert caught.value.history.interrupted and caught.value.history.steps == 2
    assert f"resume({str(path)!r}, batches)" in str(caught.value)
    with pytest.raises(TrainingInterrupted) as caught:  # a resumed one can be interrupted again
        resume(path, batches_of("translator"), lambda _: signal.raise_signal(signal.SIGINT))
    assert caught.value.history.steps == caught.value.model.history.steps == 3
    model, history = resume(path, batches_of("translator"))
    wanted_weights, wanted_losses = after(6)
    assert not history.interrupted and history.losses == wanted_losses
    assert torch.equal(weights(model), wanted_weights)


def test_while_saving_too(tmp_path, monkeypatch):
    from transformer_lesson.checkpoints import ours as checkpoints

    def slow(*arguments):
        signal.raise_signal(signal.SIGINT)
        monkeypatch.undo()
        real(*arguments)

    real = files.write_atomically
    monkeypatch.setattr(checkpoints, "write_atomically", slow)
    path = tmp_path / "run.safetensors"
    batches = batches_of("translator")
    with pytest.raises(TrainingInterrupted) as caught:
        train(model_of("translator"), batches, short(6), checkpoint=path, checkpoint_every=2)
    assert caught.value.history.interrupted and caught.value.history.steps == 2
    assert load_checkpoint(path).training.facts["history"]["interrupted"]


def test_in_the_last_step_the_run_is_complete_and_the_cell_ends_all_the_same(tmp_path):
    def press(report):
        if report.step == 6:
            signal.raise_signal(signal.SIGINT)

    model, path = model_of("translator"), tmp_path / "run.safetensors"
    with pytest.raises(TrainingInterrupted, match="step 6 of 6: .* are complete") as caught:
        train(model, batches_of("translator"), short(6), press, checkpoint=path)
    assert not caught.value.history.interrupted
    assert resume(path, [])[1] == model.history and model.history.steps == 6


def test_the_history_is_the_models_whatever_ends_the_run():
    model = model_of("translator")
    assert train(model, batches_of("translator"), short(2)) is model.history

    def fail(report):
        if report.step == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(model, batches_of("translator"), short(6), fail)
    assert model.history.steps == 3


def test_a_second_one_does_not_wait():
    before = signal.getsignal(signal.SIGINT)

    def press(report):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second interrupt was swallowed")

    with pytest.raises(KeyboardInterrupt):
        train(model_of("translator"), batches_of("translator"), short(6), press)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_is_restored_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError):
        train(model_of("translator"), batches_of("translator"), short(6), lambda _report: 1 / 0)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("setting", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_switched_off_ctrl_c_stays_off(setting):
    before = signal.signal(signal.SIGINT, setting)
    try:
        with DeferredInterrupt():
            assert signal.getsignal(signal.SIGINT) is setting
        assert signal.getsignal(signal.SIGINT) is setting
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone():
    seen = []

    def look():
        with DeferredInterrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    worker = threading.Thread(target=look)
    worker.start()
    worker.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


PROGRAM = """
import signal
from tests.training.small import batches_of, model_of, short
from transformer_lesson.training import train

def ready(report):
    if report.step == 1:
        print("ready", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    train(model_of("translator"), batches_of("translator"), short(1_000_000), ready)
except KeyboardInterrupt as interruption:
    print(interruption)
    history = interruption.history
same = len(history.learning_rates) == history.steps
print(history.interrupted, 0 < history.steps < 1_000_000, same)
"""


@pytest.mark.slow
def test_a_process_gets_ctrl_c_from_outside():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and errors == ""
    assert out.startswith("Interrupted after step ") and out.endswith("True True True\n")


HALF = """
import signal, sys
from transformer_lesson.training.interrupt import load_whole

class Press:
    def find_spec(self, name, path, target=None):
        if name.startswith("sympy."):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
try:
    load_whole("sympy")
except KeyboardInterrupt:
    print("interrupted, and", "whole" if sys.modules["sympy"].printing else "")
"""


@pytest.mark.slow
def test_a_package_is_never_loaded_by_half():
    run = [sys.executable, "-c", HALF]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "interrupted, and whole\n"
