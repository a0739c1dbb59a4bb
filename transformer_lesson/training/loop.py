"""One step of training, and the loop that repeats it, from the start or from a checkpoint."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from tqdm.auto import tqdm

from transformer_lesson.checkpoints import check_savable
from transformer_lesson.text.batches import Batch, EndlessBatches
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.distributed import (
    Learner,
    Processes,
    current,
    split_batch,
)
from transformer_lesson.training.history import History, StepReport, TrainingDiverged
from transformer_lesson.training.interrupt import DeferredInterrupt
from transformer_lesson.training.loss import batch_loss, count_labels, label_padding
from transformer_lesson.training.optimizer import clip_gradients, make_optimizer
from transformer_lesson.training.saved_run import TrainingRun, seed_random_numbers
from transformer_lesson.training.schedule import learning_rate

OnStep = Callable[[StepReport], object]


def training_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    history: History,
    learner: Learner | None = None,
) -> None:
    """Learn from one batch: forward, loss, backward, clip, update. `history` gets a line more.

    Only forward and backward pass are in training mode (dropout); before and after them the model
    is in evaluation mode.

    Args:
        learner: how several processes share the work; without it this one does it all.

    Raises:
        TrainingDiverged: the loss or the gradient is no finite number. Nothing was updated.
    """
    learner = learner or Learner(model, config, Processes())
    rate = learning_rate(history.steps + 1, config, model.config.d_model)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss = _accumulate(learner, batch, config.gradient_accumulation_steps)
    _require_finite("loss", loss, rate, history)
    norm = clip_gradients(learner.trained, config.clip).item()
    _require_finite("gradient's length", norm, rate, history)
    optimizer.step()
    history.losses.append(loss)
    history.learning_rates.append(rate)
    history.gradient_norms.append(norm)
    history.tokens += count_labels(batch.labels, label_padding(model, batch.labels))


def _accumulate(learner: Learner, batch: Batch, gradient_accumulation_steps: int) -> float:
    """Leave the gradient of the whole batch in the weights and return its loss.

    Each process works on its own rows, in `gradient_accumulation_steps` parts one after the
    other. What is averaged over the processes is made that many times larger first, so that a
    sum is left.
    """
    rank, count = learner.processes
    pad_id = label_padding(learner.model, batch.labels)
    shares = split_batch(batch, count * gradient_accumulation_steps, pad_id)[rank::count]
    total = 0.0
    learner.trained.train()
    try:
        for number, (part, weight) in enumerate(shares, start=1):
            with learner.joining(number == len(shares)):
                loss = learner.objective(part) * weight
                (loss * count).backward()
            total += loss.item()
    finally:
        learner.trained.eval()
    return learner.processes.add_up(total)[0]


def validation_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> float:
    """Return the mean loss in nats per label over all batches, without dropout and smoothing.

    The model goes back to the mode that it was in.
    """
    total, count = total_loss(model, batches, precision)
    return total / count


@torch.no_grad()
def total_loss(
    model: nn.Module, batches: Sequence[Batch], precision: str = "float32"
) -> tuple[float, int]:
    """Return the sum of the losses of all labels, in nats, and how many labels there are."""
    mode, total, count = model.training, 0.0, 0
    model.eval()
    for batch in batches:
        loss, n_labels = batch_loss(model, batch, precision)
        total, count = total + loss.item() * n_labels, count + n_labels
    model.train(mode)
    return total, count


def _require_finite(name: str, value: float, rate: float, history: History) -> None:
    if not math.isfinite(value):
        raise TrainingDiverged(
            f"the {name} at step {history.steps + 1} is {value}: try a learning rate below "
            f"{rate:.2g}, a longer warm-up or a smaller clip. The model and its history are as of "
            f"step {history.steps}.",
            history,
        )


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    config: TrainConfig,
    on_step: OnStep | None = None,
    validation: Sequence[Batch] | None = None,
    validate_every: int = 100,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    tokenizer: Tokenizer | None = None,
    shard: bool = False,
) -> History:
    """Train a model for `config.steps` steps, one batch each.

    Torch's random numbers are seeded with `config.seed` first: on one thread the same seed gives
    the same losses to the last digit. Between steps, and afterwards, the model is in evaluation
    mode.

    Ctrl-C, or Jupyter's "interrupt kernel", ends the run after the step that is under way, and
    the history says so. A second Ctrl-C does not wait for the step.

    Under `torchrun` (see `processes.start`) each process gets the same arguments and learns from
    its own rows of every batch; the loss curve is that of one process but for rounding (and for
    dropout, of which each process draws its own). The first process reports, prints and saves.

    Args:
        model: one of the package's three models, on the CPU or a GPU.
        batches: what `model(*batch.inputs)` reads and the labels that it should predict. An
            encoder-only model learns classes from labels of shape (batch,) and tokens from
            (batch, n). When the batches end they begin again.
        config: number of steps, learning rate, optimizer.
        on_step: called after each step with a `StepReport`, in the first process.
        validation: a list of batches whose mean loss is measured now and then.
        validate_every: steps between two measurements; the last step is always followed by one.
        checkpoint: file to save the run to, so that `resume` can go on with it.
        checkpoint_every: steps between two savings; the last step is always saved.
        tokenizer: saved with the model.
        shard: share out weights, gradients and optimizer state over the processes. `model` is
            then brought up to date when it is validated or saved, and at the end.

    Raises:
        ValueError: no batches, a batch that does not fit the model, no such folder, or `shard`
            with one process only.
        TrainingDiverged: the loss or the gradient is no finite number.

    Source: "Attention Is All You Need" (2017), section 5.
    """
    if checkpoint is not None:
        check_savable(checkpoint, model)
        checkpoint = Path(checkpoint)
    for name, value in (("validate_every", validate_every), ("checkpoint_every", checkpoint_every)):
        if value < 1:
            raise ValueError(f"{name} is {value}, but it must be at least 1 step.")
    learner = Learner(model, config, current(), shard)
    run = TrainingRun(
        learner=learner,
        config=config,
        optimizer=make_optimizer(learner.trained, config),
        history=History(),
        validate_every=validate_every,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        tokenizer=tokenizer,
    )
    seed_random_numbers(config.seed, learner.processes)
    _go_on(run, batches, on_step, validation)
    return run.history


def resume(
    path: str | Path,
    batches: Iterable[Batch],
    on_step: OnStep | None = None,
    validation: Sequence[Batch] | None = None,
    steps: int | None = None,
    shard: bool = False,
) -> tuple[nn.Module, History]:
    """Go on with a run that `train` saved, and save it to the same file.

    With the same batches the losses are those of a run that was never stopped.

    Args:
        path: the checkpoint.
        batches: those given to `train`; the ones already learned from are skipped.
        on_step, validation, shard: as in `train`.
        steps: a new number of steps, those already done included. It stretches the schedule.

    Returns:
        The model, in evaluation mode, and the history from the first step on.

    Raises:
        ValueError: the file is no checkpoint of a run, or is already past `steps`.
        TrainingDiverged: the loss or the gradient is no finite number.
    """
    run = TrainingRun.load(Path(path), shard)
    if steps is not None:
        run.config = replace(run.config, steps=steps)
    if run.history.steps > run.config.steps:
        raise ValueError(f"{path} is at step {run.history.steps} already, past steps = {steps}.")
    if run.history.steps < run.config.steps:
        _go_on(run, batches, on_step, validation)
    elif run.learner.processes.first:
        print(f"{path}: this run is finished, all {run.history.steps} steps are done.")
    return run.model, run.history


def _go_on(
    run: TrainingRun,
    batches: Iterable[Batch],
    on_step: OnStep | None,
    validation: Sequence[Batch] | None,
) -> None:
    """Do the steps that are left."""
    _check_validation(validation)
    learner, config, history = run.learner, run.config, run.history
    first, tokens, seconds = learner.processes.first, history.tokens, history.seconds
    upcoming = _batches_from(batches, history.steps)
    hidden = None if first else True  # None: shown on a terminal only
    bar = tqdm(total=config.steps, initial=history.steps, unit="step", disable=hidden)
    with DeferredInterrupt() as ctrl_c, bar:
        while history.steps < config.steps and not _anybody(ctrl_c.requested, learner):
            begun = time.perf_counter()
            _step(learner, next(upcoming), run)
            history.seconds += time.perf_counter() - begun

            measured = None
            if validation and _due(run.validate_every, run):
                measured = _validate(learner, validation, config.precision)
                history.validation.append((history.steps, measured))
            speed = (history.tokens - tokens) / (history.seconds - seconds)
            progress = f"loss {history.losses[-1]:.3f}, {speed:,.0f} tokens/s"
            bar.set_postfix_str(progress, refresh=False)
            bar.update()
            if on_step and first:
                last = history.losses[-1], history.learning_rates[-1], history.gradient_norms[-1]
                on_step(StepReport(history.steps, *last, speed, measured, run.model))
            if run.checkpoint and _due(run.checkpoint_every, run):
                run.save()
        history.interrupted = history.steps < config.steps
        learner.gather()
        if run.checkpoint and history.interrupted:
            run.save()
    if history.interrupted and first:
        print(_interrupted(run))


def _anybody(requested: bool, learner: Learner) -> bool:
    """Tell whether Ctrl-C has reached any process: all stop after the same step."""
    return learner.processes.add_up(requested)[0] > 0


def _step(learner: Learner, batch: Batch, run: TrainingRun) -> None:
    try:
        training_step(run.model, batch, run.optimizer, run.config, run.history, learner)
    except TrainingDiverged:  # in all processes, since all know the whole batch's loss
        learner.gather()
        raise


def _validate(learner: Learner, batches: Sequence[Batch], precision: str) -> float:
    """Return the mean loss over all batches; each process measures its own."""
    rank, count = learner.processes
    learner.gather()
    total, n_labels = total_loss(learner.model, batches[rank::count], precision)
    total, n_labels = learner.processes.add_up(total, n_labels)
    return total / n_labels


def _due(every: int, run: TrainingRun) -> bool:
    return run.history.steps % every == 0 or run.history.steps == run.config.steps


def _batches_from(batches: Iterable[Batch], step: int) -> Iterator[Batch]:
    """Return the batches without those of the first `step` steps."""
    if isinstance(batches, EndlessBatches):
        return batches.starting_at(step)
    return islice(_again_and_again(batches), step, None)


def _again_and_again(batches: Iterable[Batch]) -> Iterator[Batch]:
    while True:
        batch = None
        for batch in batches:
            yield batch
        if batch is None:
            raise ValueError("there are no batches, or no more: pass a list, not a generator.")


def _check_validation(validation: Sequence[Batch] | None) -> None:
    if validation is not None and not (isinstance(validation, Sequence) and len(validation)):
        raise ValueError(
            f"validation is a {type(validation).__name__}, but it must be a list of one batch or "
            "more: make it with corpora.batches.epoch or windows."
        )


def _interrupted(run: TrainingRun) -> str:
    how = "calling train again goes on with these weights and a new schedule"
    if run.checkpoint:
        how = f"resume({str(run.checkpoint)!r}, batches) goes on from there"
    return (
        f"Interrupted after step {run.history.steps} of {run.config.steps}: the model and its "
        f"history are as of that step; {how}."
    )
