"""One step of training, and the loop that repeats it.

This is all that one process does. `distributed` has what `torchrun` adds.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import torch
from torch import nn
from tqdm.auto import tqdm

from transformer_lesson.model.fast import learning, plain
from transformer_lesson.text.batches import Batch, EndlessBatches
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import History, StepReport, TrainingDiverged
from transformer_lesson.training.interrupt import DeferredInterrupt
from transformer_lesson.training.loss import (
    batch_loss,
    count_labels,
    label_padding,
    validation_loss,
)
from transformer_lesson.training.memory import Parts, checkpointing_activations, split_batch
from transformer_lesson.training.optimizer import clip_gradients
from transformer_lesson.training.precision import seconds_of_each
from transformer_lesson.training.saved_run import TrainingInterrupted, TrainingRun
from transformer_lesson.training.schedule import learning_rate

OnStep = Callable[[StepReport], object]


def backward(model: nn.Module, batch: Batch, config: TrainConfig) -> float:
    """Leave the gradient of a batch's mean loss in the weights, and return the loss.

    `gradient_accumulation_steps` is the number of parts that the batch is cut into. The gradients
    of the parts, one after the other, add up to that of the whole; memory is needed for only one.
    """
    pad_id = label_padding(model, batch.labels)
    return accumulate(model, split_batch(batch, config.gradient_accumulation_steps, pad_id), config)


def accumulate(model: nn.Module, parts: Parts, config: TrainConfig) -> float:
    """Add up the gradients of the parts in the weights, and return the sum of their losses."""
    total = 0.0
    model.train()
    try:
        with learning(model), checkpointing_activations(model, config.activation_checkpointing):
            for part, weight in parts:
                loss = batch_loss(model, part, config.precision, config.label_smoothing)[0] * weight
                loss.backward()
                total += loss.item()
    finally:
        model.eval()
    return total


def training_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    history: History,
    backward: Callable[[nn.Module, Batch, TrainConfig], float] = backward,
) -> None:
    """Learn from one batch: forward, loss, backward, clip, update; add the step to `history`.

    Only the forward and backward pass run in training mode (dropout); before and after them the
    model is in evaluation mode.

    Args:
        backward: leaves the batch's gradient in the weights and returns the loss.

    Raises:
        TrainingDiverged: the loss or the gradient is not finite. Nothing was updated.
    """
    rate = learning_rate(history.steps + 1, config, model.config.d_model)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss = backward(model, batch, config)
    _require_finite("loss", loss, rate, history)
    norm = clip_gradients(model, config.clip).item()
    _require_finite("gradient's length", norm, rate, history)
    optimizer.step()
    history.losses.append(loss)
    history.learning_rates.append(rate)
    history.gradient_norms.append(norm)
    history.tokens += count_labels(batch.labels, label_padding(model, batch.labels))


def _require_finite(name: str, value: float, rate: float, history: History) -> None:
    if not math.isfinite(value):
        raise TrainingDiverged(
            f"the {name} at step {history.steps + 1} is {value}: try a learning rate below "
            f"{rate:.2g}, a longer warm-up or a smaller clip. The model and its history are as of "
            f"step {history.steps}.",
            history,
        )


class Trainer:
    """The loop over a run's steps. `DistributedTrainer` overrides what several processes share.

    Args:
        run: what is trained, how far it has got, and where it is saved.
    """

    speaks = True  # shows its progress and reports

    def __init__(self, run: TrainingRun):
        self.run = run
        run.model.history = run.history  # an interrupted `history = train(...)` assigns nothing

    @classmethod
    def load(cls, path: Path) -> "Trainer":
        """Read a run from its checkpoint, and set torch's random numbers to what they were."""
        return cls(TrainingRun.load(path))

    def seed(self) -> None:
        """Reseed torch's random numbers."""
        torch.manual_seed(self.run.config.seed)

    def backward(self, model: nn.Module, batch: Batch, config: TrainConfig) -> float:
        """Leave the batch's gradient in the weights and return the loss."""
        return backward(model, batch, config)

    def seconds_of_each(self, batch: Batch) -> dict[str, float]:
        """Time each precision."""
        return seconds_of_each(self.run.model, batch, self.run.config, self.backward)

    def validate(self, batches: Sequence[Batch]) -> float:
        """Return the mean loss over all batches."""
        return validation_loss(self.run.model, batches, self.run.config.precision)

    def asked_to_stop(self, ctrl_c: DeferredInterrupt) -> bool:
        """Tell whether Ctrl-C was pressed."""
        return ctrl_c.requested

    def save(self) -> None:
        """Write the checkpoint."""
        self.run.save()

    def go_on(
        self,
        batches: Iterable[Batch],
        on_step: OnStep | None,
        validation: Sequence[Batch] | None,
    ) -> None:
        """Do the remaining steps."""
        run, history, steps = self.run, self.run.history, self.run.config.steps
        hidden = None if self.speaks else True  # None: shown on a terminal only
        bar = tqdm(total=steps, initial=history.steps, unit="step", disable=hidden, mininterval=0.5)
        with DeferredInterrupt() as ctrl_c, bar:
            upcoming = self.choose_precision(_batches_from(batches, history.steps))
            tokens, seconds = history.tokens, history.seconds
            while not (stopped := self.asked_to_stop(ctrl_c)) and history.steps < steps:
                start = time.perf_counter()
                batch = next(upcoming)
                training_step(run.model, batch, run.optimizer, run.config, history, self.backward)
                history.seconds += time.perf_counter() - start

                measured = None
                if validation and run.due(run.validate_every):
                    measured = self.validate(validation)
                    history.validation.append((history.steps, measured))
                speed = (history.tokens - tokens) / (history.seconds - seconds)
                progress = f"loss {history.losses[-1]:.3f}, {speed:,.0f} tokens/s"
                bar.set_postfix_str(progress, refresh=False)
                bar.update()
                if on_step and self.speaks:
                    on_step(history.report(speed, measured, run.model))
                if run.checkpoint and run.due(run.checkpoint_every):
                    self.save()
            history.interrupted = history.steps < steps
            if run.checkpoint and history.interrupted:
                self.save()
        if stopped:
            raise TrainingInterrupted(run)

    def choose_precision(self, upcoming: Iterator[Batch]) -> Iterator[Batch]:
        """Replace precision "auto" by the faster one, timed on the first batch.

        Returns:
            The batches, the first one included.
        """
        run, start = self.run, time.perf_counter()
        if run.config.precision == "auto":
            first = next(upcoming)
            upcoming = chain([first], upcoming)
            seconds = {"float32": 0.0} if plain() else self.seconds_of_each(first)
            run.config = replace(run.config, precision=min(seconds, key=seconds.get))
            run.history.seconds += time.perf_counter() - start
        run.history.precision = run.config.precision
        return upcoming


def _batches_from(batches: Iterable[Batch], step: int) -> Iterator[Batch]:
    """Return the batches without those of the first `step` steps."""
    if isinstance(batches, EndlessBatches):
        return batches.starting_at(step)
    return islice(_repeated(batches), step, None)


def _repeated(batches: Iterable[Batch]) -> Iterator[Batch]:
    while True:
        batch = None
        for batch in batches:
            yield batch
        if batch is None:
            raise ValueError(
                "there are no batches, or none are left: pass a list, not a generator."
            )
