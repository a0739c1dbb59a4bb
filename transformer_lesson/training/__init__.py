"""Learning: the loss, the schedule of the learning rate, and one loop for all three models.

    history = train(model, batches, TrainConfig(steps=350))

Read `loop` first: one step, and what repeats it; `runs` starts it. `python -m
transformer_lesson.training --help` trains without a notebook.
"""

from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import History, StepReport, TrainingDiverged
from transformer_lesson.training.loss import (
    bits_per_character,
    label_smoothed_loss,
    validation_loss,
)
from transformer_lesson.training.runs import resume, train
from transformer_lesson.training.saved_run import TrainingInterrupted
from transformer_lesson.training.schedule import learning_rate, warmup_rate

__all__ = [
    "History",
    "StepReport",
    "TrainConfig",
    "TrainingDiverged",
    "TrainingInterrupted",
    "bits_per_character",
    "label_smoothed_loss",
    "learning_rate",
    "resume",
    "train",
    "validation_loss",
    "warmup_rate",
]
