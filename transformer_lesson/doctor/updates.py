"""Probe: what an optimizer of one's own does with gradients that are known.

A copy of it gets weights and gradients of the doctor's; the owner's stays as it was. PyTorch's own
optimizers are not asked.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Patient, Skip, groups_of, weights_of
from transformer_lesson.doctor.tensors import noise_like

RATES = ("lr", "learning_rate", "rate", "step_size")
FIRST = ("beta1", "b1", "beta_1", "momentum", "mu")
SECOND = ("beta2", "b2", "beta_2")
RATE, DECAY = 0.01, 0.1  # in a trial
STEPS = 4
EVEN = 0.1  # relative: equal gradients' steps are unequal from here on


class Trial:
    """An optimizer's weights after each step of given gradients.

    Attributes:
        first, second: how long it keeps gradients and their squares, as its settings say, or None.
        decays: for each weight, whether its settings ask for decay.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self.shapes = [torch.empty_like(p) for p in weights_of(optimizer)]
        betas = self._first_of(("betas",))
        pair = betas if isinstance(betas, Sequence) and len(betas) == 2 else (None, None)
        self.first = self._first_of(FIRST) if pair[0] is None else pair[0]
        self.second = self._first_of(SECOND) if pair[1] is None else pair[1]
        self.decays = [
            any(bool(value) for name, value in group.items() if _is_decay(name))
            for group in _settings(optimizer)[: len(_groups(optimizer))]
            for _ in group.get("params", self.shapes)
        ]

    def _first_of(self, names: Sequence[str]) -> Any:
        for settings in _settings(self.optimizer):
            for name in names:
                if settings.get(name) is not None:
                    return settings[name]
        return None

    def gradient(self, size: float = 1.0) -> list[Tensor]:
        """Return a gradient of noise for each weight, none of it near 0."""
        every = [noise_like(p) for p in self.shapes]
        return [size * (noise + 0.5 * noise.sign()) for noise in every]

    def start(self) -> list[Tensor]:
        """Return the weights that a trial begins with."""
        return [noise_like(p).flip(0) + 0.1 for p in self.shapes]

    def run(
        self, gradients: Sequence[Sequence[Tensor]], rate: float = RATE, decay: bool = False
    ) -> list[list[Tensor]]:
        """Return by what each step moves each weight.

        Raises:
            Skip: its settings name no rate.
        """
        trial = copy.deepcopy(self.optimizer)
        if hasattr(trial, "state"):
            trial.state.clear()
        rated = False
        for settings in _settings(trial):
            for name in list(settings):
                if name in RATES and isinstance(settings[name], (int, float)):
                    settings[name], rated = rate, True
                elif _is_decay(name) and isinstance(settings[name], (int, float)):
                    settings[name] = (settings[name] and DECAY) if decay else 0.0
        if not rated:
            raise Skip("the optimizer's settings name no rate")
        weights, moves = weights_of(trial), []
        with torch.no_grad():
            for p, value in zip(weights, self.start(), strict=True):
                p.copy_(value)
        for gradient in gradients:
            before = [p.detach().clone() for p in weights]
            for p, value in zip(weights, gradient, strict=True):
                p.grad = value.to(p)
            trial.step()
            moves.append([p.detach() - old for p, old in zip(weights, before, strict=True)])
        return moves


def _groups(optimizer: Any) -> list[dict]:
    return groups_of(optimizer) or [vars(optimizer)]


def _settings(optimizer: Any) -> list[dict]:
    """Return where its settings are: each group, then its attributes."""
    return [*_groups(optimizer), vars(optimizer)]


def _is_decay(name: str) -> bool:
    other = any(word in name for word in ("lr", "rate", "ema"))
    return ("decay" in name and not other) or name in ("wd", "l2")


def updates(patient: Patient) -> Iterator[Finding]:
    """Hand known gradients to a copy of an optimizer that is not PyTorch's."""
    (optimizer,) = patient.given.need("optimizer")
    if type(optimizer).__module__.startswith("torch.optim"):
        return
    trial = Trial(optimizer)
    g = trial.gradient()
    zero = [torch.zeros_like(tensor) for tensor in g]
    same = trial.run([g] * STEPS)
    experiment = "A copy of the optimizer got gradients that are known."
    if not any(bool(move.any()) for move in same[0]):
        return
    if _along(same[0], g) > 0:
        yield Finding("optimizer_climbs", experiment, "Its first step goes along the gradient.")
        return
    times = _size(trial.run([trial.gradient(100.0)])[0]) / _size(same[0])
    for code, moved in (
        *_of_moments(trial, same, times, g, zero),
        *_of_rate(trial, same, g),
        *_of_decay(trial, zero, times),
    ):
        yield Finding(code, experiment, moved)


def _along(moves: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    return sum(float((a * b.to(a)).sum()) for a, b in zip(moves, others, strict=True))


def _size(moves: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(move.square().sum()) for move in moves))


def _of_moments(trial: Trial, same, times: float, g, zero) -> Iterator[tuple[str, str]]:
    """Whether moments are kept, for each weight alone, and corrected."""
    if trial.first and not any(bool(move.any()) for move in trial.run([g, zero])[1]):
        yield "momentum_lost", "A step without a gradient moves nothing after one with."
    half = [tensor if k % 2 else 0 * tensor for k, tensor in enumerate(g)]
    alone = trial.run([half] * 2)[1]
    apart = max(
        (
            _size([a - b]) / (_size([a]) + 1e-12)
            for a, b in zip(same[1][1::2], alone[1::2], strict=True)
        ),
        default=0.0,
    )
    if apart > 0.01:
        yield "weights_share_state", "A weight's step changes with other weights' gradients."
    if trial.second is None or not trial.first:
        return
    if not 0.9 < times < 1.1:
        yield "step_depends_on_scale", f"100 times the gradient: {times:.3g} times the step."
        return
    sizes = [[_size([move]) for move in moves] for moves in same]
    ratios = [b / a for later in sizes[1:] for a, b in zip(sizes[0], later, strict=True) if a]
    worst = max(ratios, key=lambda ratio: abs(math.log(max(ratio, 1e-9))), default=1.0)
    if abs(worst - 1) > EVEN:
        yield (
            "moments_not_corrected",
            f"Of equal gradients, a later step is {worst:.2f} times the first.",
        )


def _of_rate(trial: Trial, same, g) -> Iterator[tuple[str, str]]:
    twice = _size(trial.run([g], 2 * RATE)[0]) / _size(same[0])
    if abs(twice - 1) < 0.02:
        yield "rate_ignored", "At twice the rate, a step is as large."


def _of_decay(trial: Trial, zero, times: float) -> Iterator[tuple[str, str]]:
    """Whether decay shrinks weights, with the rate, and beside the moments."""
    if not any(trial.decays):
        return
    slow, fast = (trial.run([zero], rate, decay=True)[0] for rate in (RATE, 2 * RATE))
    pick = [k for k, decays in enumerate(trial.decays) if decays]
    start = [trial.start()[k] for k in pick]
    slow, fast = [slow[k] for k in pick], [fast[k] for k in pick]
    if _size(slow) == 0:
        yield "decay_without_effect", "Without a gradient, weights that are to decay stay."
    elif _along(slow, start) > 0:
        yield "decay_grows_weights", "Without a gradient, weights that are to decay grow."
    elif abs(_size(fast) / _size(slow) - 1) < 0.02:
        yield (
            "decay_without_rate",
            f"It shrinks weights by {_size(slow) / _size(start):.2g} at any rate.",
        )
    elif 0.9 < times < 1.1:
        shares = torch.cat([(a / b.to(a)).flatten() for a, b in zip(slow, start, strict=True)])
        usual = _usually_through_moments(trial.optimizer)
        if not usual and float(shares.std()) > 0.1 * float(shares.abs().mean()):
            yield "decay_through_moments", "Without a gradient, large and small weights move alike."


def _usually_through_moments(optimizer: Any) -> bool:
    """Whether PyTorch's optimizer of this name lets decay pass its moments, too."""
    name = type(optimizer).__name__.lower()
    return "adamw" not in name and any(kind in name for kind in ("adam", "rmsprop", "adagrad"))
