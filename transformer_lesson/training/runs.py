"""A training run: what it consists of, and how a file keeps it."""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from transformer_lesson.checkpoints import TrainingState, load_checkpoint, save_checkpoint
from transformer_lesson.config import TrainConfig
from transformer_lesson.tokenizer import Tokenizer
from transformer_lesson.training.history import History
from transformer_lesson.training.optimizers import (
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
)


@dataclass
class Run:
    """All that changes while a model is trained, and where and how often it is written down."""

    model: nn.Module
    config: TrainConfig
    optimizer: torch.optim.Optimizer
    history: History
    validate_every: int
    checkpoint: Path | None
    checkpoint_every: int
    tokenizer: Tokenizer | None

    def save(self) -> None:
        """Write a checkpoint from which the run can go on as if it had never stopped."""
        facts = {
            "config": asdict(self.config),
            "history": asdict(self.history),
            "validate_every": self.validate_every,
            "checkpoint_every": self.checkpoint_every,
            "device": next(self.model.parameters()).device.type,
        }
        tensors = optimizer_tensors(self.model, self.optimizer)
        tensors["random.cpu"] = torch.get_rng_state()
        if facts["device"] == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        training = TrainingState(facts, tensors)
        save_checkpoint(self.checkpoint, self.model, self.tokenizer, training)

    @classmethod
    def load(cls, path: Path) -> "Run":
        """Read a run, and set torch's random state to what it was then.

        A run that was on a GPU goes on there if there is one.

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
        betas = tuple(facts["config"]["betas"])  # JSON made a list of it
        config = TrainConfig(**facts["config"] | {"betas": betas})
        history = History.from_json(facts["history"])
        on_gpu = facts["device"] == "cuda" and torch.cuda.is_available()
        model.to("cuda" if on_gpu else "cpu")
        optimizer = make_optimizer(model, config)
        restore_optimizer(model, optimizer, tensors)
        torch.set_rng_state(tensors["random.cpu"])
        if on_gpu:
            torch.cuda.set_rng_state(tensors["random.cuda"])
        return cls(
            model=model,
            config=config,
            optimizer=optimizer,
            history=history,
            validate_every=facts["validate_every"],
            checkpoint=path,
            checkpoint_every=facts["checkpoint_every"],
            tokenizer=tokenizer,
        )
