"""What several processes add to training: they connect, share each batch, and sum the results.

Each process has all weights, learns from its own rows of every batch, and takes the same step as
the others, because before the step the gradients are summed over all processes.

Source: Li et al., "PyTorch Distributed" (2020), sections 2.2 and 3.3.
Differs: `DistributedDataParallel` sends gradients while others are still being computed; here all
    are sent together, after the backward pass.
"""

import os
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from transformer_lesson.text.batches import Batch
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.interrupt import DeferredInterrupt
from transformer_lesson.training.loop import Trainer, accumulate
from transformer_lesson.training.loss import label_padding, total_loss
from transformer_lesson.training.memory import split_batch
from transformer_lesson.training.saved_run import TrainingRun, random_states

PATIENCE = timedelta(minutes=5)  # a process that is silent for this long ends the job


def start() -> torch.device:
    """Join the other processes if `torchrun` started this one; return the device to train on.

    With a GPU for each process of this machine they talk through NCCL, else through gloo on the
    CPU. Without `torchrun` nothing happens, and the device is the CPU.

    A process whose `torchrun` dies, even by `kill -9`, ends within a second.
    """
    if not dist.is_torchelastic_launched():
        return torch.device("cpu")
    threading.Thread(target=_exit_with, args=(os.getppid(),), daemon=True).start()
    local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cpu")
    if torch.cuda.device_count() >= local_size:
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    return device


def stop() -> None:
    """Leave the other processes. Does nothing without them."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    """Return this process's number. The first one, 0, writes, prints and shows progress."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def add_up(*numbers: float) -> list[float]:
    """Return the sums of these numbers over all processes; each process gets them."""
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    sums = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def collect(value: Any) -> list[Any]:
    """Return every process's value, in the order of their ranks."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class DistributedTrainer(Trainer):
    """The loop in one of several processes."""

    def __init__(self, run: TrainingRun):
        super().__init__(run)
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self.speaks = self.rank == 0
        for weight in run.model.parameters():  # all start with those of process 0
            dist.broadcast(weight.detach(), src=0)

    @classmethod
    def load(cls, path: Path) -> "DistributedTrainer":
        """Read a run, which may have had another number of processes when it was saved."""
        return cls(TrainingRun.load(path, rank()))

    def seed(self) -> None:
        """Let each process draw numbers of its own, so that dropout differs among them."""
        torch.manual_seed(self.run.config.seed + self.rank)

    def backward(self, model: nn.Module, batch: Batch, config: TrainConfig) -> float:
        """Leave the whole batch's gradient in the weights; each process computes its rows'."""
        pad_id = label_padding(model, batch.labels)
        parts = split_batch(batch, self.count * config.gradient_accumulation_steps, pad_id)
        loss = accumulate(model, parts[self.rank :: self.count], config)
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        total = parameters_to_vector(gradients)  # one long message is faster than many short ones
        dist.all_reduce(total)
        vector_to_parameters(total, gradients)
        return add_up(loss)[0]

    def seconds_of_each(self, batch: Batch) -> dict[str, float]:
        """Time each precision; all processes get the same sums, and so choose the same."""
        seconds = super().seconds_of_each(batch)
        return dict(zip(seconds, add_up(*seconds.values()), strict=True))

    def validate(self, batches: Sequence[Batch]) -> float:
        """Return the mean loss over all batches; each process measures its own."""
        share = batches[self.rank :: self.count]
        total, n_labels = add_up(*total_loss(self.run.model, share, self.run.config.precision))
        return total / n_labels

    def asked_to_stop(self, ctrl_c: DeferredInterrupt) -> bool:
        """Tell whether Ctrl-C has reached any process: all stop after the same step."""
        return add_up(ctrl_c.requested)[0] > 0

    def save(self) -> None:
        """Let the first process write the checkpoint, with all processes' random states."""
        states = collect(random_states(self.run.model, self.rank))
        if self.rank == 0:
            self.run.save({name: state for part in states for name, state in part.items()})
