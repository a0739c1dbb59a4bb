"""Probes: does the evaluation say the loss per token, and is the loss the same in both modes?"""

import math
from collections.abc import Iterator

import torch

from transformer_lesson.doctor.asking import asked, live_of
from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.nothing_dropped import NoDropout
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.tensors import differ

EQUAL = 1e-4  # relative
LABELS = {"labels_not_shifted", "labels_shifted_twice", "labels_of_other_rows", "padding_in_loss"}


def as_given(ids: Ids):
    """Return a batch as the owner's functions take it: ids, or (source, target)."""
    return ids if len(ids) > 1 else ids[0]


def evaluation(patient: Patient) -> Iterator[Finding]:
    """Evaluate two batches of unlike sizes, and compare with the loss per token.

    A perplexity, bits, and a sum over tokens are right as well.
    """
    evaluate, _ = patient.given.need("evaluate", "loss")
    ran_in: list[bool] = []
    with patient.shaken(1.0):
        batch, short = patient.marked(), _shortest(patient)
        hides = patient.said.get("hides") or _is_random(patient, batch)
        parts = [] if hides else [_loss_and_counts(patient, ids) for ids in (batch, short)]
        drops = differ(*(patient.logits(*patient.texts(), train=True, seed=s) for s in (1, 2)))
        patient.model.train()
        with patient.hooked(lambda module, *_: ran_in.append(module.training), [patient.model]):
            torch.manual_seed(0)
            value = float(evaluate([as_given(batch), as_given(short)]))
    if any(ran_in) and drops:
        yield Finding(
            "evaluates_in_training_mode",
            "evaluate() was called after training.",
            "The model ran in training mode.",
        )
        return
    if not parts:
        yield from _more_of_the_same(evaluate, as_given(batch))
        return
    (loss, _, n, _), (other, _, m, _) = parts
    miss = _misses(value, parts)
    best = min(miss, key=miss.__getitem__)
    equal = max(EQUAL, 4 * patient.said.get("rounding", 0.0))
    if miss["right"] < equal:
        return
    mean = (loss * n + other * m) / (n + m)
    alone = patient.found & LABELS and not _is_right(patient, value, (batch, short), equal)
    bars = {"evaluate()": value, "per token": mean, "mean of batches": (loss + other) / 2}
    yield Finding(
        best if miss[best] < equal else "evaluation_wrong",
        f"Two batches with {n} and {m} tokens were evaluated.",
        f"It says {value:.4f}; per token the loss is {mean:.4f}.",
        picture=Picture("bars", bars, "Nats a token"),
        apart=tuple(LABELS) if alone else (),
    )


def _is_right(patient: Patient, value: float, batches: tuple[Ids, Ids], equal: float) -> bool:
    """Whether this is the loss of each next token, where the owner's loss asks for others."""
    total, count = 0.0, 0
    for ids in batches:
        labels = ids[-1][:, 1:]
        logits = patient.logits(*ids[:-1], ids[-1][:, :-1])[:, : labels.shape[1]]
        log_probabilities = logits.log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1)
        real = labels != (patient.pad if patient.pad is not None else -1)
        total, count = total - float(log_probabilities[real].sum()), count + int(real.sum())
    forms = [form for loss in (total / count, total) for form in _as_told(loss)]
    return min(abs(value / form - 1) for form in forms) < equal


def _is_random(patient: Patient, ids: Ids) -> bool:
    """Whether the loss draws words to hide."""
    with torch.no_grad():
        first, second = (float(patient.loss(*ids, seed=seed)) for seed in (1, 2))
    return abs(first / second - 1) > EQUAL


def _more_of_the_same(evaluate, ids) -> Iterator[Finding]:
    """Evaluate a batch once and four times: a mean stays, a sum becomes four times as large.

    For an encoder, which draws other words to hide in each.
    """
    values = []
    for times in (1, 4):
        torch.manual_seed(0)
        values.append(float(evaluate([ids] * times)))
    once, four_times = values
    logs = [math.log(value) if value > 0 else math.nan for value in values]
    ratios = four_times / once, four_times / once / 4, logs[1] / logs[0] if logs[0] else math.nan
    if not any(2 / 3 < ratio < 3 / 2 for ratio in ratios):
        yield Finding(
            "evaluation_wrong",
            "A batch was evaluated once, and four times in a row.",
            f"It says {once:.4f} and {four_times:.4f}.",
        )


def _misses(value: float, parts: list[tuple[float, float, int, int]]) -> dict[str, float]:
    """Return how far the value is, relatively, from each way to compute it.

    Args:
        parts: of two batches, the second of one text: `_loss_and_counts`.
    """
    (*a, n, all_a), (*b, m, all_b) = parts
    firsts = all_a // all_b + 1  # each text's first token is asked of nobody
    miss = {"right": math.inf, "mean_of_means": math.inf, "evaluation_counts_padding": math.inf}
    for first, second in zip(a, b, strict=True):  # the owner's loss, then a plain cross-entropy
        total = first * n + second * m
        ways = {"right": (total / (n + m), total), "mean_of_means": ((first + second) / 2,)}
        places = all_a + all_b
        ways["evaluation_counts_padding"] = total / places, total / (places - firsts)
        for way, values in ways.items():
            gap = min(abs(value / form - 1) for x in values for form in _as_told(x))
            miss[way] = min(miss[way], gap)
    return miss


def _as_told(loss: float) -> tuple[float, float, float]:
    """Return nats, the perplexity, bits."""
    return loss, math.exp(min(loss, 50)), loss / math.log(2)


def _shortest(patient: Patient) -> Ids:
    """Return a batch of the shortest text alone."""
    ids = patient.marked()
    lengths = (
        (ids[-1] != patient.pad).sum(1) if patient.pad is not None else torch.ones(len(ids[-1]))
    )
    row = int(lengths.argmin())
    return tuple(side[row : row + 1] for side in ids)


def _loss_and_counts(patient: Patient, ids: Ids) -> tuple[float, float, int, int]:
    """Return the mean loss, the mean cross-entropy, the number of tokens asked for, of all places.

    They differ where the loss is smoothed.
    """
    loss, logits, gradient = asked(patient, *ids)
    live = live_of(gradient)
    count, summed = int(live.sum()), patient.said.get("weight", 1.0) > 2
    log_probabilities = (
        logits.log_softmax(-1).gather(-1, gradient.argmin(-1, keepdim=True)).squeeze(-1)
    )
    return (
        float(loss) / (count if summed else 1.0),
        -float(log_probabilities[live].mean()),
        count,
        ids[-1].numel(),
    )


def both_modes(patient: Patient) -> Iterator[Finding]:
    """Compute the loss in training mode, with nothing dropped, and in eval mode."""
    ids = patient.marked()
    with patient.shaken(), NoDropout(), torch.no_grad():
        train, train_again, evaluation = (
            float(patient.loss(*ids, train=mode, seed=seed))
            for mode, seed in ((True, 0), (True, 1), (False, 0))
        )
    random = patient.kind != "encoder" and abs(train / train_again - 1) > 1e-5
    if random or _leaves_out_branches(patient):
        raise Skip("in training mode, the loss is random by something else than PyTorch's dropout")
    noisy = any("batchnorm" in type(module).__name__.lower() for module in patient.model.modules())
    if abs(train / evaluation - 1) > 1e-3 and not noisy and not _is_smoothed(patient, ids):
        yield Finding(
            "modes_disagree",
            "The loss was computed in both modes, without dropout.",
            f"It is {train:.4f} in training mode and {evaluation:.4f} in eval mode.",
        )


def _leaves_out_branches(patient: Patient) -> bool:
    """Whether, with nothing dropped, logits are random in training mode: whole branches fall out.

    An encoder's loss draws which words it hides, so it says nothing about that.
    """
    texts = patient.aside()
    with patient.shaken(), NoDropout():
        draws = [patient.logits(*texts, train=True, seed=seed) for seed in range(8)]
    return any(differ(draws[0], draw) for draw in draws)


def _is_smoothed(patient: Patient, ids: Ids) -> bool:
    """Whether labels are smoothed in training alone: by one share for all of the batch and a part.

    Smoothed by a share s, the loss is (1 - s) of the plain one, and s of that of even chances.
    """
    if patient.kind == "encoder":
        return False
    shares = []
    part = tuple(side[: len(side) // 2] for side in ids)
    with patient.shaken(), NoDropout():
        for some in (ids, part):
            loss, logits, gradient = asked(patient, *some)
            even = -logits.log_softmax(-1).mean(-1)[live_of(gradient)].mean()
            with torch.no_grad():
                modes = [float(patient.loss(*some, train=mode)) for mode in (True, False)]
            shares.append((modes[0] - modes[1]) / float(even - loss))
    return 0.005 < shares[0] < 0.5 and abs(shares[1] / shares[0] - 1) < 0.02
