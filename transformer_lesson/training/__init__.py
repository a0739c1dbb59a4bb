"""Learning: the loss, the schedule of the learning rate, and one loop for all three models.

    history = train(model, batches, TrainConfig(steps=350))

Read `steps` first, then `loop`. `python -m transformer_lesson.training --help` trains without a
notebook.
"""

from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import History, StepReport, TrainingDiverged
from transformer_lesson.training.loop import resume, train, validation_loss
from transformer_lesson.training.loss import bits_per_character, label_smoothed_loss
from transformer_lesson.training.schedule import learning_rate, warmup_rate

__all__ = [
    "History",
    "StepReport",
    "TrainConfig",
    "TrainingDiverged",
    "bits_per_character",
    "label_smoothed_loss",
    "learning_rate",
    "resume",
    "train",
    "validation_loss",
    "warmup_rate",
]
