"""Start `torchrun` from a test so that nothing of it outlives the test."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
PARENT_DIED = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """On Linux: get SIGTERM when the test run dies, by whatever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGTERM)


@contextmanager
def torchrun(*arguments: object, log: Path) -> Iterator[subprocess.Popen]:
    """Two processes of `tests.training.parallel_program` at a free port of this machine."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr=127.0.0.1", "--nproc-per-node=2"]
    command += ["-m", "tests.training.parallel_program", *map(str, arguments)]
    with open(log, "w") as file:
        job = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            preexec_fn=end_with_parent,
        )
    everybody = []
    try:
        yield job
    finally:
        if psutil.pid_exists(job.pid):
            everybody = psutil.Process(job.pid).children(recursive=True)
        for process in everybody:
            process.kill()
        job.kill()
        job.wait()


def workers(job: subprocess.Popen) -> dict[int, psutil.Process]:
    """Return the processes that a running `torchrun` has started, by rank."""
    children = psutil.Process(job.pid).children(recursive=True)
    return {int(p.environ()["RANK"]): p for p in children if "RANK" in p.environ()}
