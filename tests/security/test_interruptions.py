"""Interrupted, killed, out of room, run again, run twice at once: nothing is half written."""

import errno
import io
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from tests.training.small import model_of
from tools.browser import PATIENCE
from transformer_lesson import files
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.exercises.engine.progress import PLACE, read_progress, remember

pytestmark = pytest.mark.slow
SEED = 0
IMPORTS = """
import os, torch
from transformer_lesson.checkpoints import load_checkpoint
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.text import WindowBatches
from transformer_lesson.explorables import LiveCurves
from transformer_lesson.generation import Greedy, generate
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.training import TrainConfig, resume, train
torch.manual_seed(0)
went_on = False
model = DecoderOnlyTransformer(ModelConfig(17, 32, 4, 2, 64, 2048, dropout=0.1)).eval()
batches = WindowBatches(torch.arange(2000) % 17, 4, 16)
steps = 10**6
"""
TRAIN = """
live, went_on = LiveCurves("A decoder learns"), False
display(live)
config = TrainConfig(steps=steps)
history = train(model, batches, config, live, checkpoint="run.safetensors", checkpoint_every=2)
went_on = True
"""
TWO = """
import signal
config, went_on = TrainConfig(steps=9), False
history = train(model, batches, config, lambda report: signal.raise_signal(signal.SIGINT))
history, went_on = train(model, batches, config), True
"""
GO_ON = "model, history = resume('run.safetensors', batches, steps=history.steps + 3)"
WRITE = "written = generate(model.eval(), torch.tensor([[1, 2, 3]]), {}, Greedy(), eos_id=None).ids"
LOOK = """
checkpoint = load_checkpoint("run.safetensors") if os.path.exists("run.safetensors") else None
hooks = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
print(sorted(os.listdir()), model.training, len(hooks), went_on, end="")
"""


class Notebook:
    """A real kernel, and what its cells answer."""

    def __init__(self, folder: Path):
        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def run(self, code: str, moment: float | None = None) -> tuple[str, str]:
        """Return the name of the error, or "ok", and what was printed; interrupt it at a moment."""
        printed, done = [], threading.Event()

        def interrupt() -> None:
            wait = moment
            while not done.wait(wait):  # an interrupt before the first line is lost
                self.manager.interrupt_kernel()
                wait = 10

        def hear(message: dict) -> None:
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])
            if message["content"].get("execution_state") == "busy" and moment is not None:
                threading.Thread(target=interrupt).start()

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=PATIENCE)
        done.set()
        self.reply = reply["content"]
        return self.reply.get("ename", "ok"), "".join(printed)


@pytest.fixture
def notebook(tmp_path):
    made = Notebook(tmp_path)
    yield made
    made.client.stop_channels()
    made.manager.shutdown_kernel(now=True)


@pytest.mark.everything
def test_a_training_cell_is_interrupted_and_run_again(notebook):
    assert notebook.run(TRAIN)[0] == "NameError"  # its imports have not run
    assert notebook.run(IMPORTS) == notebook.run(IMPORTS) == ("ok", "")
    chance = random.Random(SEED)
    for moment in (0.02, 0.05, *(chance.uniform(0.05, 1.0) for _ in range(6))):
        error, _ = notebook.run(TRAIN, moment)
        assert error in ("KeyboardInterrupt", "TrainingInterrupted"), moment
        status, seen = notebook.run(LOOK)
        assert status == "ok", moment
        assert seen in ("[] False 0 False", "['run.safetensors'] False 0 False"), moment
    assert notebook.run("steps = 3\n" + TRAIN + "print(history.interrupted)") == ("ok", "False\n")
    assert notebook.run(GO_ON + "\nprint(history.steps)") == ("ok", "6\n")


@pytest.mark.everything
def test_interrupting_the_first_of_two_trainings_ends_the_cell_and_writing_goes_on(notebook):
    assert notebook.run(IMPORTS) == ("ok", "")
    assert notebook.run(TWO)[0] == "TrainingInterrupted"
    shown, said = notebook.reply["traceback"], notebook.reply["evalue"]
    assert shown == [said] and said.startswith("Interrupted after step 1 of 9: ")
    seen = notebook.run("print(went_on, model.history.steps, model.history.interrupted)")
    assert seen == ("ok", "False 1 True\n")
    assert notebook.run(WRITE.format(20) + "\nfirst = written")[0] == "ok"
    for moment in (0.05, 0.2, 0.5):
        assert notebook.run(WRITE.format(2000), moment)[0] == "KeyboardInterrupt"
        again = WRITE.format(20) + "\nprint(written == first, model.training)"
        assert notebook.run(again) == ("ok", "True False\n")


SAVER = """
import os, random, signal, sys, time, torch
from tests.training.small import model_of
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint

def save(path, model, number):
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)
    save_checkpoint(path, model)

path, model = sys.argv[1], model_of("language model", d_model=128, d_ff=1024)
"""
KILLER = """
save(path, model, 0)
chance = random.Random(0)
for kill in range(50):
    child = os.fork()
    number = 0
    while child == 0:
        number += 1
        save(path, model, number)
    time.sleep(chance.uniform(0.02, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    weights = list(load_checkpoint(path).model.parameters())
    print(len({value for weight in weights for value in weight.unique().tolist()}))
"""


@pytest.mark.everything
def test_fifty_kills_while_saving_leave_whole_files_and_no_litter(tmp_path):
    path = tmp_path / "model.safetensors"
    run = [sys.executable, "-c", SAVER + KILLER, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == "" and done.stdout.split() == ["1"] * 50  # all weights of one saving
    left = [one for one in tmp_path.iterdir() if one != path]
    assert all(one.name.startswith(".model.safetensors.") for one in left)
    assert left, "no kill met a saving"
    for one in left:
        os.utime(one, times=(0, 0))  # as if that were long ago
    (tmp_path / ".model.safetensors.1.tmp").write_bytes(b"another process is writing this now")
    (tmp_path / ".other.1.tmp").touch()
    save_checkpoint(path, load_checkpoint(path).model)
    expected = {"model.safetensors", ".model.safetensors.1.tmp", ".other.1.tmp"}
    assert {one.name for one in tmp_path.iterdir()} == expected


class FullFile(io.FileIO):
    def write(self, data):
        super().write(data[: len(data) // 2])
        no_room()


def no_room(*_arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_the_disk(monkeypatch, when: str) -> None:
    if when == "write":
        monkeypatch.setattr(files, "open", FullFile, raising=False)
    else:
        monkeypatch.setattr(files.os, when, no_room)


@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
def test_a_full_disk_is_said_and_the_old_file_stays(when, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, model_of("language model"))
    before = path.read_bytes()
    fill_the_disk(monkeypatch, when)
    with pytest.raises(OSError, match="was not written, and what was there before") as caught:
        save_checkpoint(path, model_of("language model", seed=1))
    assert caught.value.errno == errno.ENOSPC and str(path) in str(caught.value)
    assert "\n" not in str(caught.value) and "No space left on device" in str(caught.value)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_the_progress_that_was_made(tmp_path, monkeypatch):
    path = tmp_path / "my_progress.json"
    monkeypatch.setenv(PLACE, str(path))
    remember("passed", "apply_byte_pairs", True)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        fill_the_disk(patch, "fsync")
        with pytest.warns(UserWarning, match="Progress could not be written"):
            remember("passed", "causal_mask", True)
    assert path.read_bytes() == before
    remember("passed", "causal_mask", True)
    assert set(read_progress(path)["passed"]) == {"apply_byte_pairs", "causal_mask"}
