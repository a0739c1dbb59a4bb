"""A training run: what it consists of, and how it is saved to a file."""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints import TrainingState, load_checkpoint, save_checkpoint
from transformer_lesson.checkpoints.untrusted import readable_errors
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import History
from transformer_lesson.training.optimizer import (
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
)


@dataclass
class TrainingRun:
    """All that changes while a model is trained, and where and how often it is saved."""

    model: nn.Module
    config: TrainConfig
    optimizer: torch.optim.Optimizer
    history: History
    validate_every: int
    checkpoint: Path | None
    checkpoint_every: int
    tokenizer: Tokenizer | None

    def due(self, every: int) -> bool:
        """Whether something is due that happens every so many steps, and at the end."""
        return self.history.steps % every == 0 or self.history.steps == self.config.steps

    def save(self, random: dict[str, Tensor] | None = None) -> None:
        """Write a checkpoint from which the run can go on as if it had never stopped.

        Args:
            random: the random states of all processes, if there are several.
        """
        facts = {
            "config": asdict(self.config),
            "history": self.history.to_json(),
            "validate_every": self.validate_every,
            "checkpoint_every": self.checkpoint_every,
            "device": next(self.model.parameters()).device.type,
        }
        tensors = optimizer_tensors(self.model, self.optimizer)
        tensors |= random or random_states(self.model)
        training = TrainingState(facts, tensors)
        save_checkpoint(self.checkpoint, self.model, self.tokenizer, training)

    @classmethod
    def load(cls, path: Path, rank: int = 0) -> "TrainingRun":
        """Read a run, and set torch's random state to what it was then.

        A run that was on a GPU goes on there if there is one.

        Args:
            rank: of this process among several.

        Raises:
            ValueError: `load_checkpoint` refuses the file, or it holds a model without a run.
        """
        model, tokenizer, training = load_checkpoint(path)
        if training is None:
            raise ValueError(
                f"{path} holds a model, but no training run to continue: "
                "train the model with train(load_checkpoint(path).model, ...)."
            )
        facts, tensors = training
        record = f"{path}: its record of the training"
        with readable_errors(record):
            config = TrainConfig(**facts["config"])
            history = History.from_json(facts["history"])
            intervals = [int(facts[name]) for name in ("validate_every", "checkpoint_every")]
            if min(intervals) < 1:
                raise IndexError(f"saved or validated every {min(intervals)} steps")
        device = "cuda" if facts.get("device") == "cuda" and torch.cuda.is_available() else "cpu"
        optimizer = make_optimizer(model.to(device), config)
        with readable_errors(record):
            restore_optimizer(model, optimizer, tensors)
            torch.manual_seed(config.seed + rank)  # for a process that is new
            _restore_random_states(tensors, device, rank)
        return cls(
            model=model,
            config=config,
            optimizer=optimizer,
            history=history,
            validate_every=intervals[0],
            checkpoint=path,
            checkpoint_every=intervals[1],
            tokenizer=tokenizer,
        )


def random_states(model: nn.Module, rank: int = 0) -> dict[str, Tensor]:
    """Return this process's random states, by their names in a file."""
    states = {_name("cpu", rank): torch.get_rng_state()}
    if next(model.parameters()).is_cuda:
        states[_name("cuda", rank)] = torch.cuda.get_rng_state()
    return states


def _restore_random_states(tensors: dict[str, Tensor], device: str, rank: int) -> None:
    """Restore the random states of this process, if the checkpoint has them."""
    if _name("cpu", rank) in tensors:
        torch.set_rng_state(tensors[_name("cpu", rank)])
    if device == "cuda" and _name("cuda", rank) in tensors:
        torch.cuda.set_rng_state(tensors[_name("cuda", rank)])


def _name(device: str, rank: int) -> str:
    return f"random.{device}.{rank}" if rank else f"random.{device}"


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a training, after a whole step.

    Being a `KeyboardInterrupt` it ends the cell, or the program. `history` and `model` are as of
    that step.
    """

    def __init__(self, run: TrainingRun):
        self.history, self.model = run.history, run.model
        at = f"Interrupted after step {run.history.steps} of {run.config.steps}"
        subject = "the model and its history (model.history) are"
        how = "Call train again to go on with these weights; its schedule begins anew"
        if run.checkpoint:
            how = f"resume({str(run.checkpoint)!r}, batches) goes on from there"
        rest = f"as they were after that step. {how}" if run.history.interrupted else "complete"
        super().__init__(f"{at}: {subject} {rest}.")

    def _render_traceback_(self) -> list[str]:
        """What Jupyter shows: nothing is wrong, so a sentence is enough."""
        return [str(self)]
