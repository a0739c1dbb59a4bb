"""The clinic's program as the doctor takes it: its weights as a module, its functions on ids."""

from collections.abc import Callable
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor, nn

COLD = 1e-4  # a temperature at which the likeliest word is always drawn


class Program(nn.Module):
    """A program's weights before training; its forward is the program's `logits_of`."""

    def __init__(self, names: dict, seed: int = 0):
        super().__init__()
        self.names = names
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.weights = nn.ParameterDict(names["new_weights"]())

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits; the program pads every text to its own length, on the left."""
        n = ids.shape[1]
        padding = ids.new_full((len(ids), max(0, self.names["LENGTH"] - n)), self.names["PAD"])
        return self.names["logits_of"](torch.cat([padding, ids], 1), self.weights)[:, -n:]


def handed(names: dict, seed: int = 0) -> dict:
    """Return what a program's owner can hand over to `examine`.

    That is the model, a batch, the loss, the optimizer, the schedule, the evaluation and writing.
    A training step is missing: the program's `learn` makes an optimizer of its own each time. And
    one remark is meant: padding is on the left, so a word's place moves while the program writes,
    and what is likeliest is asked at other places than in the whole text.

    Args:
        names: what the program defines.
        seed: of the first weights.
    """
    model, words, pad = Program(names, seed), names["WORDS"], names["PAD"]

    def loss(ids: Tensor) -> Tensor:
        """Return the loss of some ids."""
        return names["shifted_loss"](model(ids), ids, pad)

    def evaluate(batches: list[Tensor]) -> float:
        """Return what the program's evaluation says of ids in place of texts."""
        with swapped(names, batch_of=torch.stack):
            return names["evaluate"](model.weights, list(torch.cat(batches)))

    def generate(ids: Tensor, count: int) -> Tensor:
        """Return the ids, each text with its likeliest words behind it."""
        return torch.stack([_written(model, row.tolist(), count) for row in ids])

    def schedule(step: int) -> float:
        """Return the rate of a step."""
        return names["rate_at"](step, names["BATCHES"], names["PEAK"], 1, names["EPOCHS"])

    return dict(
        model=model, batch=names["batch_of"](names["TEXTS"][::11]), pad_id=pad,
        padding_side="left", eos_id=words.index("<eos>"), start_id=words.index("<bos>"),
        max_length=names["LENGTH"], loss=loss, optimizer=_optimizer(model), schedule=schedule,
        steps=names["BATCHES"] * names["EPOCHS"], evaluate=evaluate, generate=generate,
        meant={"generate_not_argmax"},
    )  # fmt: skip


@contextmanager
def swapped(names: dict, **functions: Callable):
    """Let a program call other functions by these names."""
    originals = {name: names[name] for name in functions}
    names.update(functions)
    try:
        yield
    finally:
        names.update(originals)


def _optimizer(model: Program) -> torch.optim.Optimizer:
    """Return the optimizer that the program makes before its first step."""
    optimizers = []

    def adam(weights):
        """Note the optimizer."""
        optimizers.append(torch_adam(weights))
        return optimizers[-1]

    torch_adam = torch.optim.Adam
    with mock.patch.object(torch.optim, "Adam", adam):
        model.names["learn"](model.weights, model.names["TEXTS"], 0)
    return optimizers[-1]


def _written(model: Program, ids: list[int], count: int) -> Tensor:
    """Return the ids with the likeliest words behind them, by the program's own `write`."""
    names, written = model.names, []

    def write_on(next_logits, ids, draws, length, temperature):
        """Write so coldly that the likeliest word is drawn, and note the ids."""
        written[:] = original(next_logits, ids, [0.5] * count, length, COLD)
        return written

    original = names["write_on"]
    with swapped(names, write_on=write_on):
        names["write"](model.weights, " ".join(names["WORDS"][i] for i in ids))
    return torch.tensor(written[: len(ids) + count])
