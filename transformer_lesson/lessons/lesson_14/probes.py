"""The clinic's probes: each asks a program one question and measures one number.

Probes of the model alone use the healthy program's weights and texts, so that nothing else can
matter.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.checks import one_thread
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.probing import (
    EVERY,
    another_end,
    calls,
    gradients,
    initial_loss,
    moved,
    other_order,
    start,
)
from transformer_lesson.exercises.program import FUNCTIONS
from transformer_lesson.lessons.lesson_14.sick_runs import EVALUATED, HEALTHY, Trained, trained

FURTHER = 1  # from a run's seed to that of its run from another seed
WATCHED = (*FUNCTIONS, "attend", "think")


class Measure(NamedTuple):
    """A probe that measures one number.

    Args:
        cost: minutes.
        asks: the question it answers.
        unit: of the number.
        digits: after the decimal point.
        near: largest difference from the healthy program that still counts as healthy; of a run
            from another seed, from the nearest of the healthy runs from eleven seeds.
        take: measures it, given the namespaces of the program and of the healthy one.
    """

    cost: int
    asks: str
    unit: str
    digits: int
    near: float
    take: Callable[[dict, dict], float]


def _moved(change: Callable, positions: slice) -> Callable[[Trained, Trained], float]:
    """Return a measurement of how far logits move, with the healthy program's weights and texts."""

    def take(sick: Trained, right: Trained) -> float:
        """Return how far the logits of a sick program move."""
        names = {
            "batch_of": right.names["batch_of"],
            "new_weights": lambda: {
                name: weight.detach() for name, weight in right.weights.items()
            },
        }
        return moved(sick.names | names, change, positions)

    return take


def _other_texts(ids: Tensor, weights: dict) -> Tensor:
    """Return the ids with the words of every second text reordered."""
    ids = ids.clone()
    ids[1::2, -6:] = ids[1::2, -6:].flip(1)
    return ids


def _company(sick: Trained, right: Trained) -> float:
    """Return how far a text's logits move when the other texts of its batch change."""
    ids = right.names["batch_of"](right.names["TEXTS"][::EVERY])
    with torch.no_grad():
        both = [
            sick.names["logits_of"](texts, right.weights)[::2]
            for texts in (ids, _other_texts(ids, right.weights))
        ]
    return float((both[0] - both[1])[ids[::2] != right.names["PAD"]].abs().max())


def _rate(sick: Trained, right: Trained) -> float:
    names = sick.names
    return names["rate_at"](60, names["BATCHES"], names["PEAK"], 1, names["EPOCHS"])


def _tokens_of_a_text(sick: Trained, right: Trained) -> float:
    ids = sick.names["batch_of"](sick.names["TEXTS"])
    return float((ids != sick.names["PAD"]).sum(1).float().mean())


def _texts_read(sick: Trained, right: Trained) -> float:
    """Return how many different texts ten training steps read."""
    (weights, _), names, read = start(sick.names, sick.seed), sick.names, set()
    batch_of = names["batch_of"]
    names["batch_of"] = lambda texts: read.update(map(tuple, texts)) or batch_of(texts)
    try:
        names["learn"](weights, names["TEXTS"], 10)
    finally:
        names["batch_of"] = batch_of
    return len(read)


def _same_batch(sick: Trained, right: Trained) -> float:
    weights, ids = start(sick.names, sick.seed)
    evaluation = sick.names["evaluate"](weights, sick.names["TEXTS"][::EVERY], len(ids))
    return evaluation - initial_loss(sick.names, sick.seed)


def _shortest_gradient(sick: Trained, right: Trained) -> float:
    """Return the length of the shortest matrix gradient before the first step."""
    lengths = gradients(sick.names | {"batch_of": right.names["batch_of"]}, sick.seed)
    return min(length for name, length in lengths.items() if "W" in name)


def _weights_moved(sick: Trained, right: Trained) -> float:
    weights, _ = start(sick.names, sick.seed)
    before = {name: weight.detach().clone() for name, weight in weights.items()}
    sick.names["learn"](weights, sick.names["TEXTS"], 10)
    return sum(not torch.equal(before[name], weight) for name, weight in weights.items())


def _two_texts(sick: Trained, right: Trained) -> float:
    weights, _ = start(sick.names, sick.seed)
    return sick.names["learn"](weights, sick.names["TEXTS"][:2] * 8, 40)[-1]


def _written_alike(sick: Trained, right: Trained) -> float:
    """Return how many of 24 beginnings both programs continue alike with the healthy weights."""
    nouns, verbs = right.names["NOUNS"], right.names["PARTICLES"]
    beginnings = [f"<bos> {noun} {verb}" for noun in nouns for verb in verbs]
    pairs = (
        (program.names["write"](right.weights, b) for program in (sick, right)) for b in beginnings
    )
    return sum(text == other for text, other in pairs)


def _far_back(sick: Trained, right: Trained) -> float:
    """Return how many continuations of 24 beginnings change if only the verb changes."""
    nouns, verbs = right.names["NOUNS"], right.names["PARTICLES"]
    different = 0
    for noun in nouns:
        beginnings = [f"<bos> {noun} {verb} heute die Tür" for verb in verbs]
        continuations = [
            sick.names["write"](right.weights, beginning)[len(beginning) :]
            for beginning in beginnings
        ]
        different += len(set(continuations))
    return different


def _twice(sick: Trained, right: Trained) -> float:
    runs = []
    for _ in range(2):
        weights, _ = start(sick.names, sick.seed)
        runs.append(torch.tensor(sick.names["learn"](weights, sick.names["TEXTS"], 10)))
    return float((runs[0] - runs[1]).abs().max())


def _another_seed(sick: Trained, right: Trained) -> float:
    """Return the evaluation after a run from the next seed."""
    torch.manual_seed(sick.seed + FURTHER)
    names = sick.names
    weights = names["new_weights"]()
    names["learn"](weights, names["TEXTS"])
    return names["evaluate"](weights, names["TEXTS"][::EVALUATED])


def idle_heads(sick: Trained) -> int:
    """Return how many heads can be removed, one at a time, for less than 0.05 nats."""
    names, attend = sick.names, sick.names["scaled_dot_product_attention"]
    texts = names["TEXTS"][::EVALUATED]
    full, idle = names["evaluate"](sick.weights, texts), 0
    for head in range(names["N_HEADS"]):

        def one_less(*tensors, head=head):
            results, weights = attend(*tensors)
            results[:, head] = 0
            return results, weights

        names["scaled_dot_product_attention"] = one_less
        try:
            idle += abs(names["evaluate"](sick.weights, texts) - full) < 0.05
        finally:
            names["scaled_dot_product_attention"] = attend
    return idle


def _layer_by_layer(sick: Trained, right: Trained) -> float:
    """Return how many functions on the way to the loss give different results for equal inputs."""
    differ = set()
    for name, inputs in calls(right.names, WATCHED):
        with torch.no_grad():
            expected, actual = (outcome(program.names[name], inputs) for program in (right, sick))
        if not same(expected, actual):
            differ.add(name)
    return len(differ)


MEASURES = {
    "initial loss": Measure(
        1,
        "What is the loss before the first step? (ln V is 3.00)",
        "nats",
        2,
        0.1,
        lambda sick, _: initial_loss(sick.names, sick.seed),
    ),
    "leak": Measure(
        1,
        "Change the last word: how far do logits at earlier positions move?",
        "moved by",
        2,
        0.1,
        _moved(another_end, slice(0, -1)),
    ),
    "order": Measure(
        1,
        "Exchange two words: how far do logits at later positions move?",
        "moved by",
        2,
        0.5,
        _moved(other_order, slice(-3, None)),
    ),
    "company": Measure(
        1,
        "Change the other texts of a batch: how far do a text's logits move?",
        "moved by",
        2,
        0.1,
        _company,
    ),
    "rates": Measure(1, "What is the learning rate at step 60?", "at step 60", 4, 1e-4, _rate),
    "read a text": Measure(
        1, "How many tokens has a text of a batch, on average?", "tokens", 1, 0.2, _tokens_of_a_text
    ),
    "count texts": Measure(
        1, "How many different texts do ten batches hold?", "texts", 0, 20, _texts_read
    ),
    "same batch": Measure(
        1,
        "For one and the same batch, evaluation minus training: how far apart are the losses?",
        "nats",
        2,
        0.02,
        _same_batch,
    ),
    "far back": Measure(
        1,
        "Healthy weights, 24 beginnings that differ in words far back: how many endings?",
        "endings",
        0,
        9,
        _far_back,
    ),
    "gradients": Measure(
        2,
        "How long is the shortest gradient of a matrix, before the first step?",
        "the shortest",
        4,
        0.004,
        _shortest_gradient,
    ),
    "weights moved": Measure(
        2, "How many of the 15 weights change in ten steps?", "of 15", 0, 0, _weights_moved
    ),
    "one batch": Measure(
        2, "Can it learn two texts by heart? The loss after 40 steps:", "nats", 2, 0.2, _two_texts
    ),
    "trained weights": Measure(
        2,
        "Healthy weights, 24 beginnings: how many does it end as the healthy program does?",
        "of 24 alike",
        0,
        0,
        _written_alike,
    ),
    "same seed twice": Measure(
        2, "Train twice with one seed: how far apart are the losses?", "nats", 2, 0.01, _twice
    ),
    "another seed": Measure(
        2,
        "Run both again, from another seed: what does the evaluation say?",
        "nats",
        2,
        0.05,
        _another_seed,
    ),
    "head off": Measure(
        2,
        "Switch off one head after the other: how many does nobody miss?",
        "of 2",
        0,
        0,
        lambda sick, _: idle_heads(sick),
    ),
    "layer by layer": Measure(
        5,
        "Given the same inputs, how many of 15 functions return other numbers?",
        "of 15 functions",
        0,
        0,
        _layer_by_layer,
    ),
}
"""The clinic's probes by name, cheapest first; each gives one number, unlike a boss's probes."""


def measured(name: str = HEALTHY, seed: int = 0) -> dict[str, float]:
    """Return every probe's measurement of a program, by the probe's name.

    Args:
        name: of the fault.
        seed: of its run, and of the healthy one that it is compared with.

    Raises:
        ValueError: there is no such fault.
    """
    sick, right = trained(name, seed), trained(seed=seed)
    with one_thread(), torch.random.fork_rng(devices=[]):
        return {probe: float(measure.take(sick, right)) for probe, measure in MEASURES.items()}
