"""Probes of a whole program for the boss, each with a price in minutes.

A probe gets the namespaces of the sick and the healthy program and reports what it finds in both.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.program import FUNCTIONS

EVERY = 11  # probes read every 11th text: short ones, with padding, and long ones


class Probe(NamedTuple):
    """A probe.

    Args:
        cost: minutes.
        asks: the question it answers.
        take: finds the answer, given the sick and the healthy program's namespaces.
    """

    cost: int
    asks: str
    take: Callable[[dict, dict], str]


def _both(measure: Callable[[dict], str]) -> Callable[[dict, dict], str]:
    """Return a probe that reports a measurement of both programs."""
    return lambda sick, right: f"sick: {measure(sick)}\nhealthy: {measure(right)}"


def start(names: dict, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Return the weights before training and the ids of some texts."""
    torch.manual_seed(seed)
    weights = names["new_weights"]()
    return weights, names["batch_of"](names["TEXTS"][::EVERY])


def initial_loss(names: dict, seed: int = 0) -> float:
    """Return the loss of some texts before training, in nats."""
    weights, ids = start(names, seed)
    logits = names["logits_of"](ids, weights)
    return float(names["shifted_loss"](logits, ids, names["PAD"]).detach())


def _initial_loss(names: dict) -> str:
    loss, even = initial_loss(names), math.log(len(names["WORDS"]))
    return f"{loss:.2f} nats before the first step, where even chances give {even:.2f}"


def moved(names: dict, change: Callable[[Tensor, dict], Tensor], positions: slice) -> float:
    """Return how far the logits of real words move when something else changes."""
    weights, ids = start(names)
    with torch.no_grad():
        before = names["logits_of"](ids, weights)
        after = names["logits_of"](change(ids, weights), weights)
    real = (ids != names["PAD"])[:, positions]
    return float((after - before)[:, positions, 1:][real].abs().max())


def _moved(names: dict, change: Callable[[Tensor, dict], Tensor], positions: slice) -> str:
    return f"they move by {moved(names, change, positions):.2g}"


def another_end(ids: Tensor, weights: dict) -> Tensor:
    """Return the ids with a different last word."""
    ids = ids.clone()
    ids[:, -1] = ids[:, -1] % 5 + 4
    return ids


def _other_padding(ids: Tensor, weights: dict) -> Tensor:
    weights["table"][0] = torch.randn_like(weights["table"][0])  # a norm ignores equal numbers
    return ids


def other_order(ids: Tensor, weights: dict) -> Tensor:
    """Return the ids with the fourth and fifth words from the end swapped."""
    ids = ids.clone()
    ids[:, [-5, -4]] = ids[:, [-4, -5]]
    return ids


def gradients(names: dict, seed: int = 0) -> dict[str, float]:
    """Return, by name, the length of each weight's gradient before the first step."""
    weights, ids = start(names, seed)
    names["shifted_loss"](names["logits_of"](ids, weights), ids, names["PAD"]).backward()
    return {
        name: 0.0 if weight.grad is None else float(weight.grad.norm())
        for name, weight in weights.items()
    }


def _gradients(names: dict) -> str:
    return ", ".join(f"{name} {length:.2g}" for name, length in gradients(names).items())


def _one_batch(names: dict) -> str:
    weights, _ = start(names)
    losses = names["learn"](weights, names["TEXTS"][:2], 40)
    return f"{losses[-1]:.2f} nats after 40 steps on two texts"


def _rates(names: dict) -> str:
    steps = (0, 4, 9, 10, 40, 80, 119)
    numbers = names["BATCHES"], names["PEAK"], 1, names["EPOCHS"]
    rates = [f"{step}: {names['rate_at'](step, *numbers):.4f}" for step in steps]
    return ", ".join(rates)


def _trained_weights(sick: dict, right: dict) -> str:
    """Load the healthy program's trained weights into both programs and let them write."""
    torch.manual_seed(0)
    weights = right["new_weights"]()
    right["learn"](weights, right["TEXTS"])
    texts = [names["write"](weights, "<bos> das Kind macht") for names in (sick, right)]
    return "sick: {}\nhealthy: {}".format(*texts)


def _layer_by_layer(sick: dict, right: dict) -> str:
    """Call each function with the healthy program's inputs and compare the results."""
    for name, inputs in calls(right):
        with torch.no_grad():
            expected, actual = (outcome(names[name], inputs) for names in (right, sick))
        if not same(expected, actual):
            return f"The first function that returns other numbers than it should is `{name}`."
    return "From the ids to the loss, every function returns what it should."


def calls(names: dict, watched: tuple[str, ...] = FUNCTIONS) -> list[tuple[str, tuple]]:
    """Return the calls of the program's functions on the way to the loss, innermost first."""
    recorded, originals = [], {name: names[name] for name in watched}

    def noted(name: str) -> Callable:
        """Return a function that keeps its inputs when it has been called."""

        def call(*inputs):
            result = originals[name](*inputs)
            recorded.append((name, inputs))
            return result

        return call

    weights, ids = start(names)
    weights = {name: weight + 0.1 * torch.randn_like(weight) for name, weight in weights.items()}
    names.update({name: noted(name) for name in watched})
    try:
        with torch.no_grad():
            names["shifted_loss"](names["logits_of"](ids, weights), ids, names["PAD"])
    finally:
        names.update(originals)
    return recorded


PROBES = {
    "initial loss": Probe(1, "Is the loss near ln V before the first step?", _both(_initial_loss)),
    "leak": Probe(
        1,
        "Change the last word: do logits at earlier positions move?",
        _both(lambda names: _moved(names, another_end, slice(0, -1))),
    ),
    "padding": Probe(
        1,
        "Change the embedding of padding: do logits at real words move?",
        _both(lambda names: _moved(names, _other_padding, slice(None))),
    ),
    "order": Probe(
        1,
        "Exchange two words: do logits at the last position move?",
        _both(lambda names: _moved(names, other_order, slice(-1, None))),
    ),
    "rates": Probe(1, "What is the learning rate at some steps?", _both(_rates)),
    "gradients": Probe(2, "How long is each weight's gradient?", _both(_gradients)),
    "one batch": Probe(2, "Can it learn two texts by heart?", _both(_one_batch)),
    "trained weights": Probe(2, "How does it write with healthy weights?", _trained_weights),
    "layer by layer": Probe(
        5, "Given the same inputs, which function is the first to differ?", _layer_by_layer
    ),
}
"""The probes by name."""
