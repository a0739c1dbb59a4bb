"""Probe: the axis of the attention's softmax, and the factor of its scores."""

from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.watching import Softmax, Watch

NEARLY = 0.02  # relative: a factor is another one from here on


def watch(patient: Patient, texts: Ids, train: bool = False) -> Watch:
    """Run the model and return what it called."""
    patient.model.train(train)
    with torch.no_grad(), Watch() as watched:
        (patient.given.forward or patient.model)(*texts)
    return watched


def softmax(patient: Patient) -> Iterator[Finding]:
    """Watch each softmax of scores; the factor is how much they grow with the product before.

    Needs a softmax that is called from Python, or scaled_dot_product_attention.
    """
    with patient.shaken():
        texts, more_texts = patient.texts(3, 9, 7), patient.texts(3, 9, 7)
        first, second = watch(patient, texts), watch(patient, more_texts)
        training = watch(patient, texts, train=True)
    lengths = {ids.shape[1] for ids in texts}
    of_scores = [
        k
        for k, call in enumerate(first.softmaxes)
        if call.scores.shape[-1] in lengths and call.scores.shape[-2] in lengths
    ]
    for call in (first.softmaxes[k] for k in of_scores):
        if call.axis is not None and call.axis % call.scores.dim() != call.scores.dim() - 1:
            shape = tuple(call.scores.shape)
            yield Finding(
                "softmax_axis",
                f"A softmax of scores of the shape {shape} was watched.",
                f"It runs along axis {call.axis}, not along the last one.",
            )
            break
    yield from _dropped(first, training)
    factors = [(call.scale, call.Q.shape[-1]) for call in first.attentions]
    if len(first.softmaxes) == len(second.softmaxes):
        pairs = [_factor(first, second, k) for k in of_scores]
        factors += [pair for pair in pairs if pair is not None]
    if not factors:
        raise Skip("no softmax of scores is called from Python")
    for factor, d_k in factors:
        factor = factor * _on_the_way(first, factor, d_k)
        if abs(factor / d_k**-0.5 - 1) > NEARLY:
            yield Finding(
                "attention_scale",
                f"d_k is {d_k}: the factor is 1/√d_k = {d_k**-0.5:.3f}.",
                f"Scores are multiplied by {factor:.3f}.",
            )
            break


def _factor(first: Watch, second: Watch, k: int) -> tuple[float, int] | None:
    """Return by which factor the k-th softmax's input moves with the product before, and d_k."""
    call, other = first.softmaxes[k], second.softmaxes[k]
    place = _product_before(first, call)
    if place is None or place >= len(second.products) or call.scores.shape != other.scores.shape:
        return None
    product, d_k = first.products[place]
    moved = (other.scores - call.scores).double()
    steps = (second.products[place][0] - product).reshape(moved.shape).double()
    fine = moved.isfinite() & (moved.abs() > 0)
    for scores in (call.scores, other.scores):
        fine &= scores > -1e3
    if int(fine.sum()) <= 5:
        return None
    if call.own:  # without each row's maximum
        moved, steps = (_centered(x, fine) for x in (moved, steps))
    factor = (steps[fine] * moved[fine]).sum() / steps[fine].pow(2).sum()
    residual = moved[fine] - factor * steps[fine]
    if float(residual.norm()) > 0.02 * float(moved[fine].norm()):  # something else is added
        return None
    return float(factor), d_k


def _centered(x: Tensor, fine: Tensor) -> Tensor:
    """Return numbers without the mean of their row, as far as they are fine."""
    x = x.masked_fill(~fine, 0.0)
    return x - x.sum(-1, keepdim=True) / fine.sum(-1, keepdim=True).clamp(min=1)


def _product_before(watched: Watch, call: Softmax) -> int | None:
    """Return the place of the last product before this softmax with as many numbers."""
    places = range(min(call.products, len(watched.products)) - 1, -1, -1)
    count = call.scores.numel()
    return next((x for x in places if watched.products[x][0].numel() == count), None)


def _on_the_way(watched: Watch, factor: float, d_k: int) -> float:
    """Return what queries or keys were multiplied by before the product."""
    right = d_k**-0.5
    twice = abs(factor / right - 1) < NEARLY  # the scores have it: has a query or key, too?
    if abs(factor - 1) > NEARLY and not twice:
        return 1.0
    factors = [value for value, length in watched.factors if length == d_k or not twice]
    whole = any(abs(value / right - 1) < 0.01 for value in factors)
    halves = sum(abs(value / right**0.5 - 1) < 0.01 for value in factors) >= 2
    return right if whole or halves else 1.0


def _dropped(usual: Watch, training: Watch) -> Iterator[Finding]:
    """Whether scores are 0 in training that are not in eval mode: also those of hidden words."""
    for a, b in zip(usual.softmaxes, training.softmaxes, strict=False):
        if a.scores.shape == b.scores.shape and not a.own:
            share = float(((b.scores == 0) & (a.scores != 0)).float().mean())
            if share > 0.01:
                experiment = "A softmax was watched in training and in eval mode."
                moved = f"In training, {share:.0%} of its scores are exactly 0."
                yield Finding("scores_dropped", experiment, moved)
                return
