"""The loop that trains all three models, from the start or from a checkpoint."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from tqdm.auto import tqdm

from transformer_lesson.checkpoints import check_savable
from transformer_lesson.config import TrainConfig
from transformer_lesson.corpora.batches import Batch, EndlessBatches
from transformer_lesson.tokenizer import Tokenizer
from transformer_lesson.training.history import History, StepReport
from transformer_lesson.training.interrupts import DeferredInterrupt
from transformer_lesson.training.optimizers import make_optimizer
from transformer_lesson.training.runs import Run
from transformer_lesson.training.steps import training_step, validation_loss

OnStep = Callable[[StepReport], object]


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
) -> History:
    """Train a model for `config.steps` steps, one batch each.

    Torch's random numbers are seeded with `config.seed` first: on one thread the same seed gives
    the same losses to the last digit. Between steps, and afterwards, the model is in evaluation
    mode.

    Ctrl-C, or Jupyter's "interrupt kernel", ends the run after the step that is under way, and
    the history says so. A second Ctrl-C does not wait for the step.

    Args:
        model: one of the package's three models, on the CPU or a GPU.
        batches: what `model(*batch.inputs)` reads and the labels that it should predict. An
            encoder-only model learns classes from labels of shape (batch,) and tokens from
            (batch, n). When the batches end they begin again.
        config: number of steps, learning rate, optimizer.
        on_step: called after each step with a `StepReport`.
        validation: a list of batches whose mean loss is measured now and then.
        validate_every: steps between two measurements; the last step is always followed by one.
        checkpoint: file to save the run to, so that `resume` can go on with it.
        checkpoint_every: steps between two savings; the last step is always saved.
        tokenizer: saved with the model.

    Raises:
        ValueError: no batches, a batch that does not fit the model, or no such folder.
        TrainingDiverged: the loss or the gradient is no finite number.

    Source: "Attention Is All You Need" (2017), section 5.
    """
    if checkpoint is not None:
        check_savable(checkpoint, model)
        checkpoint = Path(checkpoint)
    for name, value in (("validate_every", validate_every), ("checkpoint_every", checkpoint_every)):
        if value < 1:
            raise ValueError(f"{name} is {value}, but it must be at least 1 step.")
    run = Run(
        model=model,
        config=config,
        optimizer=make_optimizer(model, config),
        history=History(),
        validate_every=validate_every,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        tokenizer=tokenizer,
    )
    torch.manual_seed(config.seed)
    _go_on(run, batches, on_step, validation)
    return run.history


def resume(
    path: str | Path,
    batches: Iterable[Batch],
    on_step: OnStep | None = None,
    validation: Sequence[Batch] | None = None,
    steps: int | None = None,
) -> tuple[nn.Module, History]:
    """Go on with a run that `train` saved, and save it to the same file.

    With the same batches the losses are those of a run that was never stopped.

    Args:
        path: the checkpoint.
        batches: those given to `train`; the ones already learned from are skipped.
        on_step, validation: as in `train`.
        steps: a new number of steps, those already done included. It stretches the schedule.

    Returns:
        The model, in evaluation mode, and the history from the first step on.

    Raises:
        ValueError: the file is no checkpoint of a run, or is already past `steps`.
        TrainingDiverged: the loss or the gradient is no finite number.
    """
    run = Run.load(Path(path))
    if steps is not None:
        run.config = replace(run.config, steps=steps)
    if run.history.steps > run.config.steps:
        raise ValueError(f"{path} is at step {run.history.steps} already, past steps = {steps}.")
    if run.history.steps == run.config.steps:
        print(f"{path}: this run is finished, all {run.history.steps} steps are done.")
    else:
        _go_on(run, batches, on_step, validation)
    return run.model, run.history


def _go_on(
    run: Run,
    batches: Iterable[Batch],
    on_step: OnStep | None,
    validation: Sequence[Batch] | None,
) -> None:
    """Do the steps that are left."""
    _check_validation(validation)
    model, config, history = run.model, run.config, run.history
    tokens, seconds = history.tokens, history.seconds
    upcoming = _batches_from(batches, history.steps)
    bar = tqdm(total=config.steps, initial=history.steps, unit="step", disable=None)
    with DeferredInterrupt() as ctrl_c, bar:
        while history.steps < config.steps and not ctrl_c.requested:
            begun = time.perf_counter()
            training_step(model, next(upcoming), run.optimizer, config, history)
            history.seconds += time.perf_counter() - begun

            measured = None
            if validation and _due(run.validate_every, run):
                measured = validation_loss(model, validation, config.precision)
                history.validation.append((history.steps, measured))
            speed = (history.tokens - tokens) / (history.seconds - seconds)
            progress = f"loss {history.losses[-1]:.3f}, {speed:,.0f} tokens/s"
            bar.set_postfix_str(progress, refresh=False)
            bar.update()
            if on_step:
                last = history.losses[-1], history.rates[-1], history.gradient_norms[-1]
                on_step(StepReport(history.steps, *last, speed, measured, model))
            if run.checkpoint and _due(run.checkpoint_every, run):
                run.save()
        history.interrupted = history.steps < config.steps
        if run.checkpoint and history.interrupted:
            run.save()
    if history.interrupted:
        print(_interrupted(run))


def _due(every: int, run: Run) -> bool:
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


def _interrupted(run: Run) -> str:
    how = "calling train again goes on with these weights and a new schedule"
    if run.checkpoint:
        how = f"resume({str(run.checkpoint)!r}, batches) goes on from there"
    return (
        f"Interrupted after step {run.history.steps} of {run.config.steps}: the model and its "
        f"history are as of that step; {how}."
    )
