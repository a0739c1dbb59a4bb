"""Several processes learn what one learns; when one dies, all end, and the run can go on."""

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch

from tests.training import parallel_program
from tests.training.torchrun import torchrun, workers
from tools.browser import PATIENCE
from transformer_lesson.checkpoints import load_checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.everything]
CURVES = ["translator", "language model", "classifier", "token head", "one row", "parts"]


@pytest.fixture(scope="module")
def one_and_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parallel")
    with torchrun("scenarios", folder / "two.json", log=folder / "log") as job:
        one = parallel_program.scenarios(tmp_path_factory.mktemp("alone"))
        assert job.wait(timeout=PATIENCE) == 0, (folder / "log").read_text()
    return json.loads(json.dumps(one)), json.loads((folder / "two.json").read_text())


@pytest.mark.parametrize("name", CURVES)
def test_the_loss_curve_is_that_of_one_process(name, one_and_two):
    one, two = (results[name] for results in one_and_two)
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-4)
    assert two["norms"][0] == pytest.approx(one["norms"][0], rel=1e-5)
    assert two["tokens"] == one["tokens"] and not two["training"]
    assert [step for step, _ in two["validation"]] == [step for step, _ in one["validation"]]
    validation = [[loss for _, loss in curves["validation"]] for curves in (two, one)]
    assert validation[0] == pytest.approx(validation[1], abs=1e-4)
    assert min(one["losses"]) < one["losses"][0]


def test_one_reports_all_stop_at_a_loss_that_is_no_number_and_all_choose_one_precision(one_and_two):
    for results in one_and_two:  # with dropout a resumed run repeats itself
        wanted, got = results["resumed"]["wanted"], results["resumed"]["got"]
        assert got["losses"] == wanted["losses"] and got["weights"] == wanted["weights"]
    one, two = one_and_two
    assert len(two["diverged"]) == 2 and two["diverged"][0] == two["diverged"][1]
    assert two["diverged"][0].startswith("the loss at step 1 is nan: try a learning rate")
    assert two["who speaks"]["reports"] == [3, 0]
    assert two["who speaks"]["draws"][0] != two["who speaks"]["draws"][1]
    # seconds: 1 and 3 in the first process, 4 and 1 in the second
    assert one["chosen"] == ["float32"] and two["chosen"] == ["bfloat16", "bfloat16"]


def test_all_begin_with_the_first_ones_weights(one_and_two):
    first, second = one_and_two[1]["other weights"]
    assert first == second
    alone = torch.tensor(one_and_two[0]["other weights"][0])
    apart = (torch.tensor(first) - alone).abs()  # Adam makes a full step of a gradient's rounding
    assert apart.median() < 1e-5 and apart.max() < 0.05


def test_a_layer_on_two_processes_is_the_whole_layer_and_so_are_its_gradients(one_and_two):
    one, two = (results["in parts"] for results in one_and_two)
    assert len(two["output"]) == len(two["x"]) == len(two["b_2"]) == 2
    for name, (whole,) in one.items():
        whole = torch.tensor(whole)
        for part in two[name]:
            apart = (torch.tensor(part) - whole).abs().max() / whole.abs().max()
            assert apart < 1e-6, name


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_killed_worker_ends_the_job_and_the_run_goes_on(tmp_path):
    folder, log, steps = tmp_path / "run", tmp_path / "log", tmp_path / "run" / "steps"

    def reached(step):
        return steps.exists() and steps.read_text().count("\n") >= step

    with torchrun("run", folder, "--steps", 100, log=log) as job:
        until(lambda: reached(45) or job.poll() is not None)
        both = workers(job)
        assert sorted(both) == [0, 1]
        both[1].kill()
        assert job.wait(timeout=PATIENCE) != 0
        assert not any(process.is_running() for process in both.values())
    saved = load_checkpoint(folder / "checkpoint.safetensors").training.facts["history"]
    assert len(saved["losses"]) in (40, 60)
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint.safetensors", "steps"]
    assert "signal" in log.read_text().lower()

    steps.unlink()
    with torchrun("run", folder, "--resume", log=log) as job:  # and Ctrl-C after a few steps
        until(lambda: reached(5) or job.poll() is not None)
        job.send_signal(signal.SIGINT)
        assert job.wait(timeout=PATIENCE) != 0
    said, done = log.read_text(), steps.read_text().split()
    assert said.count("Interrupted after step ") == 1  # one process speaks
    assert int(done[0]) == len(saved["losses"]) + 1
    stopped = load_checkpoint(folder / "checkpoint.safetensors").training.facts["history"]
    assert len(stopped["losses"]) == int(done[-1])
    assert stopped["losses"][: len(saved["losses"])] == saved["losses"]


def has_ended(pid):
    """Whether a process is gone, or has nobody who asks how it ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_process_ends_when_the_one_that_started_it_dies():
    watch = "import os; from transformer_lesson.training.distributed import _exit_with; "
    child = f"{watch}parent = os.getppid(); print(os.getpid(), flush=True); _exit_with(parent)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    with parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    until(lambda: has_ended(pid))
