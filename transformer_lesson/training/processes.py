"""The processes that `torchrun` starts: who they are, and the few words that they exchange."""

import os
import threading
import time
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

PATIENCE = timedelta(minutes=5)  # a process that is not heard of for so long ends the job


class Processes(NamedTuple):
    """All processes of a run, seen from one of them. A run without `torchrun` has one.

    Args:
        rank: this one's number, from 0.
        count: how many there are.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes, prints and shows progress."""
        return self.rank == 0

    def add_up(self, *numbers: int | float) -> list[int | float]:
        """Return the sums of these numbers over all processes: everybody gets the same."""
        if self.count == 1:
            return list(numbers)
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        sums = torch.tensor(numbers, dtype=torch.float64, device=device)
        dist.all_reduce(sums)
        return sums.tolist()

    def collect(self, value: Any) -> list[Any]:
        """Return every process's value, in the order of their ranks."""
        values = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value)
        return values


def current() -> Processes:
    """Return the processes of this run: one, unless `start` or you have set up more."""
    if not (dist.is_available() and dist.is_initialized()):
        return Processes()
    return Processes(dist.get_rank(), dist.get_world_size())


def start() -> torch.device:
    """Join the other processes if `torchrun` started this one; return the device to train on.

    With a GPU for each process of this machine they talk through NCCL, else through gloo on the
    CPU. Without `torchrun` nothing happens, and the device is the CPU.

    A process whose `torchrun` dies, even by `kill -9`, ends within a second.

    Source: Li et al., "PyTorch Distributed" (2020), section 3.3.
    """
    if not dist.is_torchelastic_launched():
        return torch.device("cpu")
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    local_rank, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cpu")
    if torch.cuda.device_count() >= here:
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    return device


def stop() -> None:
    """Leave the other processes. Does nothing without them."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
