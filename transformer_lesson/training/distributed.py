"""What several processes add to training: who they are, and how they share the work."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from transformer_lesson.model.transformers import EncoderOnlyTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.loss import batch_loss, count_labels

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


def split_batch(batch: Batch, parts: int, pad_id: int | None = None) -> list[tuple[Batch, float]]:
    """Return every part of a batch with its weight, its share of the labels that count.

    Part i holds the rows i, i + parts, i + 2 * parts, ... and keeps the padding of the whole, so
    that each part has about as much to compute. The mean loss of the batch is the sum of the
    parts' mean losses times their weights, and so is its gradient. A plain mean of the means
    would count a label in a short part for more than one in a long part.

    A part without anything to predict is the whole batch with weight 0: every process has the
    same number of parts to work on, whatever the batch.

    Raises:
        ValueError: parts is under 1.
    """
    if parts < 1:
        raise ValueError(f"parts is {parts}, but it must be at least 1.")
    total = count_labels(batch.labels, pad_id)
    shares = []
    for first in range(parts):
        part = Batch(tuple(ids[first::parts] for ids in batch.inputs), batch.labels[first::parts])
        n_labels = count_labels(part.labels, pad_id)
        shares.append((part, n_labels / total) if n_labels else (batch, 0.0))
    return shares


def has_two_heads(model: nn.Module) -> bool:
    """Tell whether a model has a classifier and a token head: a batch trains only one of them."""
    if not isinstance(model, EncoderOnlyTransformer):
        return False
    return model.classifier is not None and model.projection is not None


class Objective(nn.Module):
    """A model and its loss as one module, so that what wraps a module can wrap the whole step."""

    def __init__(self, model: nn.Module, config: TrainConfig):
        super().__init__()
        self.model, self.settings = model, config

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss of a batch in nats per label."""
        config = self.settings
        with (
            checkpointing_activations(self.model)
            if config.activation_checkpointing
            else nullcontext()
        ):
            return batch_loss(self.model, batch, config.precision, config.label_smoothing)[0]


@contextmanager
def checkpointing_activations(model: nn.Module) -> Iterator[None]:
    """Let each block forget what it computed and compute it again when gradients need it.

    Only the vectors between blocks are kept: memory for the price of a second forward pass.
    Dropout draws the same numbers again.

    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
    """
    with ExitStack() as undo:
        for block in blocks(model):
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
            undo.callback(delattr, block, "forward")  # the class's own is there again
        yield


def blocks(model: nn.Module) -> Iterator[nn.Module]:
    """All blocks of a model's stacks."""
    return chain(getattr(model, "encoder", ()), getattr(model, "decoder", ()))


class Learner:
    """A model as this process trains it.

    Alone, and with `DistributedDataParallel`, that is the model itself: each process has all
    weights, and backward averages the gradients over the processes. With `fully_shard` it is a
    copy of which each process keeps a part of every weight, gradient and optimizer state. A
    block's weights are put together when it computes, and dropped again. The model itself is
    then brought up to date by `gather`.

    Args:
        model: one of the package's models.
        config: precision, label smoothing, activation_checkpointing.
        processes: of this run.
        shard: whether to share out the weights.

    Raises:
        ValueError: weights are to be shared out, but there is only one process.

    Source: Li et al., "PyTorch Distributed" (2020); Rajbhandari et al., "ZeRO" (2019).
    """

    def __init__(
        self, model: nn.Module, config: TrainConfig, processes: Processes, shard: bool = False
    ):
        if shard and processes.count == 1:
            raise ValueError(
                "shard is True, but there is one process only: start several, as in "
                "torchrun --nproc-per-node=2 -m transformer_lesson.training --shard ..."
            )
        self.model = self.trained = model
        self.processes, self.sharded = processes, shard
        if shard:
            self.trained = deepcopy(model)
            model.eval()
        self.objective = Objective(self.trained, config)
        if shard:
            _share_out(self.objective, processes.count)
        elif processes.count > 1:
            self.objective = DistributedDataParallel(
                self.objective,
                gradient_as_bucket_view=True,
                find_unused_parameters=has_two_heads(model),
            )
            # as an argument it has another name before PyTorch 2.13
            self.objective.broadcast_buffers = False

    @contextmanager
    def joining(self, joins: bool) -> Iterator[None]:
        """Average the gradients over the processes in this block's backward pass, or not yet."""
        if self.sharded:
            self.objective.set_requires_gradient_sync(joins)
        waits = self.processes.count > 1 and not self.sharded and not joins
        with self.objective.no_sync() if waits else nullcontext():
            yield

    @torch.no_grad()
    def gather(self) -> None:
        """Copy the shards' weights into `model`, in all processes at once."""
        if self.sharded:
            pairs = zip(self.model.parameters(), self.trained.parameters(), strict=True)
            for whole, part in pairs:
                whole.copy_(gathered(part))


def _share_out(objective: Objective, count: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = next(objective.parameters()).device.type
    mesh = init_device_mesh(device, (count,))
    for block in blocks(objective.model):
        fully_shard(block, mesh=mesh)
    fully_shard(objective, mesh=mesh)  # what belongs to no block: embeddings, last norm, output


def gathered(tensor: Tensor) -> Tensor:
    """Return the whole of a tensor whose rows may be shared out over the processes.

    Differs: `full_tensor()` does the same, but now and then it crashes with gloo (torch 2.13).
    """
    if not hasattr(tensor, "to_local"):
        return tensor
    return torch.cat(current().collect(tensor.to_local())).view(tensor.shape)


def shared_like(value: Tensor, weight: Tensor) -> Tensor:
    """Return this process's part of a whole tensor, shared out as `weight` is."""
    if value.dim() == 0 or not hasattr(weight, "to_local"):
        return value.to(weight.device)
    from torch.distributed.tensor import distribute_tensor

    value, mesh = value.to(weight.device), weight.device_mesh
    # None: nothing is sent, each process has the whole tensor and keeps its part
    return distribute_tensor(value, mesh, weight.placements, src_data_rank=None)
