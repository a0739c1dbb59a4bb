"""A run of training, from the start or from a checkpoint, in one process or in several."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch.distributed as dist
from torch import nn

from transformer_lesson.checkpoints import check_savable
from transformer_lesson.text.batches import Batch
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.distributed import DistributedTrainer
from transformer_lesson.training.history import History
from transformer_lesson.training.loop import OnStep, Trainer
from transformer_lesson.training.optimizer import make_optimizer
from transformer_lesson.training.saved_run import TrainingRun


def _trainer() -> type[Trainer]:
    """Return the trainer for this process: alone, or one of those started by `torchrun`."""
    if dist.is_available() and dist.is_initialized():
        return DistributedTrainer
    return Trainer


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

    Ctrl-C, or Jupyter's "interrupt kernel", ends the run after the current step: the checkpoint is
    written, and `TrainingInterrupted` ends the cell. The history is then `model.history`, as after
    every run. A second Ctrl-C does not wait for the step.

    Under `torchrun` (see `distributed.start`) each process gets the same arguments and learns from
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
        checkpoint_every: steps between two saves; the last step is always saved.
        tokenizer: saved with the model.

    Raises:
        ValueError: no batches, a batch that does not fit the model, no such folder, or a model or
            tokenizer that a checkpoint cannot keep.
        TrainingDiverged: the loss or the gradient is not finite.
        TrainingInterrupted: Ctrl-C was pressed. It is a `KeyboardInterrupt`.

    Source: "Attention Is All You Need" (2017), section 5.
    """
    if checkpoint is not None:
        check_savable(checkpoint, model, tokenizer)
        checkpoint = Path(checkpoint)
    for name, value in (("validate_every", validate_every), ("checkpoint_every", checkpoint_every)):
        if value < 1:
            raise ValueError(f"{name} is {value}, but it must be at least 1 step.")
    _check_validation(validation)
    run = TrainingRun(
        model=model,
        config=config,
        optimizer=make_optimizer(model, config),
        history=History(),
        validate_every=validate_every,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        tokenizer=tokenizer,
    )
    trainer = _trainer()(run)
    trainer.seed()
    trainer.go_on(batches, on_step, validation)
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
        TrainingDiverged, TrainingInterrupted: as in `train`.
    """
    _check_validation(validation)
    trainer = _trainer().load(Path(path))
    run = trainer.run
    if steps is not None:
        run.config = replace(run.config, steps=steps)
    if run.history.steps > run.config.steps:
        raise ValueError(f"{path} is at step {run.history.steps} already, past steps = {steps}.")
    if run.history.steps < run.config.steps:
        trainer.go_on(batches, on_step, validation)
    elif trainer.speaks:
        print(f"{path}: this run is finished, all {run.history.steps} steps are done.")
    return run.model, run.history


def _check_validation(validation: Sequence[Batch] | None) -> None:
    if validation is not None and not (isinstance(validation, Sequence) and len(validation)):
        raise ValueError(
            f"validation is a {type(validation).__name__}, but it must be a list of one batch or "
            "more: make it with transformer_lesson.text.batches.epoch or windows_in_order."
        )
