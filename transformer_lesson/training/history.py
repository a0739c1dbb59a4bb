"""What a training run leaves behind besides the model."""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from torch import nn

CURVES = ("losses", "learning_rates", "gradient_norms")


class StepReport(NamedTuple):
    """What `on_step` gets after each step.

    Args:
        step: counts from 1.
        loss: of this step's batch before the update, in nats per token.
        learning_rate: of this step.
        gradient_norm: length of the gradient of all weights together, before clipping.
        tokens_per_second: labels learned from per second of training, this call's mean.
        validation: validation loss after this step, or `None` if it was not measured.
        model: the model itself, after the update.
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    validation: float | None
    model: nn.Module


@dataclass
class History:
    """The curves of a training run; index 0 is step 1.

    Args:
        losses: training loss of each step, in nats per token, label smoothing included.
        learning_rates: of each step.
        gradient_norms: length of the gradient of each step, before clipping.
        validation: (step, loss) for each measurement; without label smoothing.
        tokens: how many labels were learned from; padding does not count.
        seconds: spent in steps, batches included, and in choosing the precision; validation,
            `on_step` and saving are not.
        interrupted: whether the run was stopped by hand before its last step.
        precision: of the matrix products, "float32" or "bfloat16"; with `precision="auto"` the
            chosen one.
    """

    losses: list[float] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)
    tokens: int = 0
    seconds: float = field(default=0.0, compare=False)
    interrupted: bool = False
    precision: str = "float32"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "History":
        """Return the history of these fields, as JSON keeps them: with lists for tuples.

        Raises:
            TypeError: a curve that is not made of numbers, or a field that no history has.
        """
        validation = [(step, float(loss)) for step, loss in values["validation"]]
        curves = {name: list(map(float, values[name])) for name in CURVES}
        return cls(**values | {"validation": validation} | curves)

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return len(self.losses)

    def report(self, speed: float, validation: float | None, model: nn.Module) -> StepReport:
        """Return the last step's report for `on_step`."""
        last = self.losses[-1], self.learning_rates[-1], self.gradient_norms[-1]
        return StepReport(self.steps, *last, speed, validation, model)

    def __repr__(self) -> str:
        losses = f", loss {self.losses[0]:.3f} to {self.losses[-1]:.3f}" if self.losses else ""
        validation = f", validation {self.validation[-1][1]:.3f}" if self.validation else ""
        return f"History({self.steps} steps{losses}{validation})"


class TrainingDiverged(FloatingPointError):
    """A loss or gradient was not finite. `history` holds what came before."""

    def __init__(self, message: str, history: History):
        super().__init__(message)
        self.history = history
