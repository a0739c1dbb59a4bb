"""A model as one process among several trains it: a copy of all weights, or a shard of each."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from functools import partial
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from transformer_lesson.config import TrainConfig
from transformer_lesson.corpora.batches import Batch
from transformer_lesson.training.losses import batch_loss
from transformer_lesson.training.processes import Processes, current
from transformer_lesson.training.shares import has_two_heads


class Objective(nn.Module):
    """A model and its loss as one module, so that what wraps a module can wrap the whole step."""

    def __init__(self, model: nn.Module, config: TrainConfig):
        super().__init__()
        self.model, self.settings = model, config

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss of a batch in nats per label."""
        config = self.settings
        with recomputing(self.model) if config.recompute else nullcontext():
            return batch_loss(self.model, batch, config.precision, config.label_smoothing)[0]


@contextmanager
def recomputing(model: nn.Module) -> Iterator[None]:
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
        config: precision, label smoothing, recompute.
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
