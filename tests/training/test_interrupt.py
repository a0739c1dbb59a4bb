"""Ctrl-C leaves model and history as of the last full step, whenever it comes."""

import itertools
import signal
import subprocess
import sys
import threading

import pytest
import torch

from tests.patience import PATIENCE
from tests.training.small import batches_of, history_of, model_of, run, short, weights
from transformer_lesson import files
from transformer_lesson.checkpoints import load_checkpoint
from transformer_lesson.training import TrainingInterrupted, resume, train
from transformer_lesson.training.interrupt import DeferredInterrupt


def after(steps: int):
    kept = {}
    history = history_of(short(), lambda told: kept.setdefault(told.step, weights(told.model)))
    return kept[steps], history.losses[:steps]


def press(*_):
    signal.raise_signal(signal.SIGINT)


def press_at(step: int):
    return lambda report: press() if report.step == step else None


def third_call():
    calls = itertools.count(1)
    return lambda *_: press() if next(calls) == 3 else None


def press_in_batch(model):
    hook = third_call()
    return (hook() or batch for batch in batches_of("translator"))


def press_in_forward(model):
    model.decoder[1].register_forward_hook(third_call())
    return batches_of("translator")


def press_in_backward(model):
    model.encoder[0].norm_1.weight.register_hook(third_call())
    return batches_of("translator")


@pytest.mark.slow
@pytest.mark.parametrize("where", [press_in_batch, press_in_forward, press_in_backward])
def test_the_step_under_way_is_finished_and_what_called_train_ends(where, capsys):
    model, before = model_of("translator"), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(model, where(model), short())
    wanted_weights, wanted_losses = after(3)
    assert model.history.interrupted and model.history.losses == wanted_losses
    assert torch.equal(weights(model), wanted_weights) and not model.training
    assert signal.getsignal(signal.SIGINT) is before
    assert isinstance(caught.value, TrainingInterrupted)
    assert caught.value.history is model.history and caught.value.model is model
    said = str(caught.value)
    assert said.startswith("Interrupted after step 3 of 6: the model and its history (model.hist")
    assert "Call train again" in said and capsys.readouterr().out == ""


@pytest.mark.slow
def test_from_on_step_with_a_checkpoint_the_run_can_go_on(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(TrainingInterrupted) as caught:
        run(short(), press_at(2), checkpoint=path)
    assert caught.value.history.interrupted and caught.value.history.steps == 2
    assert f"resume({str(path)!r}, batches)" in str(caught.value)
    with pytest.raises(TrainingInterrupted) as caught:  # a resumed one can be interrupted again
        resume(path, batches_of("translator"), press)
    assert caught.value.history.steps == caught.value.model.history.steps == 3
    model, history = resume(path, batches_of("translator"))
    wanted_weights, wanted_losses = after(6)
    assert not history.interrupted and history.losses == wanted_losses
    assert torch.equal(weights(model), wanted_weights)


def test_while_saving_too(tmp_path, monkeypatch):
    from transformer_lesson.checkpoints import own_format as checkpoints

    def slow(*arguments):
        press()
        monkeypatch.undo()
        real(*arguments)

    real = files.write_atomically
    monkeypatch.setattr(checkpoints, "write_atomically", slow)
    path = tmp_path / "run.safetensors"
    with pytest.raises(TrainingInterrupted) as caught:
        run(short(), checkpoint=path, checkpoint_every=2)
    assert caught.value.history.interrupted and caught.value.history.steps == 2
    assert load_checkpoint(path).training.facts["history"]["interrupted"]


def test_in_the_last_step_the_run_is_complete_and_the_cell_ends_all_the_same(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(TrainingInterrupted, match="step 6 of 6: .* are complete") as caught:
        run(short(), press_at(6), checkpoint=path)
    history = caught.value.model.history
    assert history is caught.value.history and not history.interrupted
    assert resume(path, [])[1] == history and history.steps == 6


def test_the_history_is_the_models_and_the_handler_restored_whatever_ends_the_run():
    before = signal.getsignal(signal.SIGINT)
    model, history = run(short(2))
    assert history is model.history
    with pytest.raises(ZeroDivisionError):
        train(model, batches_of("translator"), short(), lambda report: 1 / (3 - report.step))
    assert model.history.steps == 3
    assert signal.getsignal(signal.SIGINT) is before

    def twice(report):
        press(), press()
        raise AssertionError("the second interrupt was swallowed")

    with pytest.raises(KeyboardInterrupt):
        run(short(), twice)
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


def test_other_threads_train_and_leave_signals_alone():
    seen, runs = [], []

    def work():
        runs.append(history_of(short(2), lambda _: seen.append(signal.getsignal(signal.SIGINT))))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert runs[0].steps == 2 and seen == [signal.getsignal(signal.SIGINT)] * 2


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
    done = subprocess.run([sys.executable, "-c", HALF], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "interrupted, and whole\n"
