"""Ctrl-C leaves model and history as of the last full step, whenever it comes."""

import itertools
import signal
import subprocess
import sys
import threading

import pytest
import torch

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


@pytest.mark.slow
def test_the_step_under_way_is_finished_and_what_called_train_ends(capsys):
    model, calls = model_of("translator"), itertools.count(1)
    before = signal.getsignal(signal.SIGINT)
    model.decoder[1].register_forward_hook(lambda *_: press() if next(calls) == 3 else None)
    with pytest.raises(TrainingInterrupted) as caught:
        train(model, batches_of("translator"), short())
    wanted_weights, wanted_losses = after(3)
    assert model.history.interrupted and model.history.losses == wanted_losses
    assert torch.equal(weights(model), wanted_weights) and not model.training
    assert signal.getsignal(signal.SIGINT) is before
    assert isinstance(caught.value, KeyboardInterrupt)
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
