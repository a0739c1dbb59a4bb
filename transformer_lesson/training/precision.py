"""Which precision of the matrix products is faster here: it depends on model and processor."""

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from transformer_lesson.text.batches import Batch
from transformer_lesson.training.config import PRECISIONS, TrainConfig

ROUNDS = 3


def seconds_of_each(
    model: nn.Module,
    batch: Batch,
    config: TrainConfig,
    backward: Callable[[nn.Module, Batch, TrainConfig], object],
) -> dict[str, float]:
    """Time forward and backward pass in each precision, in turns: the best of a few rounds.

    Nothing is learned meanwhile: the gradients are dropped, no weight is updated, and torch's
    random state is restored. So a run has the same curve as one whose precision was fixed from the
    start.

    Args:
        backward: leaves the gradient of the batch in the model's weights.
    """
    device = next(model.parameters()).device
    seconds = {precision: [] for precision in PRECISIONS}
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        for _ in range(1 + ROUNDS):
            for precision in PRECISIONS:
                start = time.perf_counter()
                backward(model, batch, replace(config, precision=precision))
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                seconds[precision].append(time.perf_counter() - start)
                model.zero_grad()
    return {precision: min(times[1:]) for precision, times in seconds.items()}  # [0]: warm-up
