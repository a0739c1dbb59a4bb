"""A training run: what it consists of, and how a file keeps it."""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints import TrainingState, load_checkpoint, save_checkpoint
from transformer_lesson.checkpoints.untrusted import readable_errors
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.distributed import Learner, Processes, current
from transformer_lesson.training.history import History
from transformer_lesson.training.optimizer import (
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
)


@dataclass
class TrainingRun:
    """All that changes while a model is trained, and where and how often it is written down."""

    learner: Learner
    config: TrainConfig
    optimizer: torch.optim.Optimizer
    history: History
    validate_every: int
    checkpoint: Path | None
    checkpoint_every: int
    tokenizer: Tokenizer | None

    @property
    def model(self) -> nn.Module:
        """The whole model."""
        return self.learner.model

    def save(self) -> None:
        """Write a checkpoint from which the run can go on as if it had never stopped.

        All processes bring together what they have, and the first one writes it.
        """
        self.learner.gather()
        facts = {
            "config": asdict(self.config),
            "history": asdict(self.history),
            "validate_every": self.validate_every,
            "checkpoint_every": self.checkpoint_every,
            "device": next(self.model.parameters()).device.type,
        }
        processes = self.learner.processes
        tensors = optimizer_tensors(self.learner.trained, self.optimizer)
        for rank, states in enumerate(processes.collect(_random_states(facts["device"]))):
            tensors |= {_name(device, rank): state for device, state in states.items()}
        if processes.first:
            training = TrainingState(facts, tensors)
            save_checkpoint(self.checkpoint, self.model, self.tokenizer, training)

    @classmethod
    def load(cls, path: Path, shard: bool = False) -> "TrainingRun":
        """Read a run, and set torch's random state to what it was then.

        A run that was on a GPU goes on there if there is one. The number of processes may be
        another than before.

        Raises:
            ValueError: `load_checkpoint` refuses the file, or it holds a model without a run.
        """
        model, tokenizer, training = load_checkpoint(path)
        if training is None:
            raise ValueError(
                f"{path} holds a model, but no training run to go on with: "
                "train the model with train(load_checkpoint(path).model, ...)."
            )
        facts, tensors = training
        record, processes = f"{path}: its record of the training", current()
        with readable_errors(record):
            betas = tuple(facts["config"]["betas"])  # JSON made a list of it
            config = TrainConfig(**facts["config"] | {"betas": betas})
            history = History.from_json(facts["history"])
            intervals = [int(facts[name]) for name in ("validate_every", "checkpoint_every")]
            if min(intervals) < 1:
                raise IndexError(f"saved or validated every {min(intervals)} steps")
        device = "cuda" if facts.get("device") == "cuda" and torch.cuda.is_available() else "cpu"
        learner = Learner(model.to(device), config, processes, shard)
        optimizer = make_optimizer(learner.trained, config)
        with readable_errors(record):
            restore_optimizer(learner.trained, optimizer, tensors)
            seed_random_numbers(config.seed, processes)
            _restore_random_states(tensors, device, processes.rank)
        return cls(
            learner=learner,
            config=config,
            optimizer=optimizer,
            history=history,
            validate_every=intervals[0],
            checkpoint=path,
            checkpoint_every=intervals[1],
            tokenizer=tokenizer,
        )


def seed_random_numbers(seed: int, processes: Processes) -> None:
    """Seed torch; each process draws numbers of its own, so that dropout differs among them."""
    torch.manual_seed(seed + processes.rank)


def _random_states(device: str) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state()} if device == "cuda" else states


def _restore_random_states(tensors: dict[str, Tensor], device: str, rank: int) -> None:
    """Set the states of this process, if it was there when the checkpoint was written."""
    if _name("cpu", rank) in tensors:
        torch.set_rng_state(tensors[_name("cpu", rank)])
    if device == "cuda" and _name("cuda", rank) in tensors:
        torch.cuda.set_rng_state(tensors[_name("cuda", rank)])


def _name(device: str, rank: int) -> str:
    return f"random.{device}.{rank}" if rank else f"random.{device}"
