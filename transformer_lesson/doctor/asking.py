"""What a loss asks of each position, read off its gradient in the logits."""

from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.tensors import tensors_in
from transformer_lesson.doctor.watching import LossReads


def asked(patient: Patient, *ids: Tensor, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss, its logits and its gradient in them; the seed is for what it draws.

    Raises:
        Skip: no module returns logits on the way to the loss, and no cross-entropy reads any.
    """
    with torch.enable_grad(), LossReads() as reads:
        loss, logits = with_logits(patient, ids, retain=True, seed=seed)
        size = patient.said["classes"]
        read = [tensor for tensor in reads.read if size in tensor.shape]
        for tensor in read:
            if tensor.requires_grad:
                tensor.retain_grad()
        loss.backward()
    patient.model.zero_grad(set_to_none=True)
    patient.said["read"] = [
        tensor.detach().movedim(tensor.shape.index(size), -1) for tensor in read
    ]
    last = [tensor for tensor in read if tensor.shape[-1] == size][-1:]
    usable = [tensor for tensor in (*last, *logits) if tensor.grad is not None]
    if not usable:
        raise Skip(
            "no module returns logits on the way to the loss, and no cross-entropy reads any"
        )
    logits, gradient = (by_text(x.float(), ids) for x in (usable[-1].detach(), usable[-1].grad))
    return loss.detach(), logits, gradient


def by_text(logits: Tensor, ids: Ids) -> Tensor:
    """Return logits by text and token, where a model gives them by token and text."""
    turned = logits.dim() == 3 and len(logits) != len(ids[-1]) == logits.shape[1]
    return logits.transpose(0, 1) if turned else logits


def live_of(gradient: Tensor) -> Tensor:
    """Return which positions the loss asks for anything."""
    size = gradient.abs().amax(-1)
    return size > 1e-3 * size.max()


def with_logits(
    patient: Patient, ids: Ids, retain: bool, seed: int = 0
) -> tuple[Tensor, list[Tensor]]:
    """Return the loss and what modules returned of the logits' size, the whole model's last."""
    size = patient.said.get("classes")
    if size is None:
        size = patient.said["classes"] = patient.logits(*patient.texts(2, 9, 7)).shape[-1]
    caught: list[tuple[bool, Tensor]] = []

    def catch(module, args, kwargs, output) -> None:
        """Keep what has the logits' size, and the coarsest rounding on the way."""
        for tensor in list(tensors_in(output))[:1]:
            if tensor.is_floating_point():
                eps = torch.finfo(tensor.dtype).eps
                patient.said["rounding"] = max(eps, patient.said.get("rounding", 0.0))
        logits = getattr(output, "logits", None)
        for tensor in [logits] if logits is not None else list(tensors_in(output))[:3]:
            if tensor.is_floating_point() and tensor.dim() >= 2 and tensor.shape[-1] == size:
                if retain and tensor.requires_grad:
                    tensor.retain_grad()
                caught.append((module is patient.model, tensor))
                return

    with patient.hooked(catch):
        loss = patient.loss(*ids, seed=seed)
    return loss, [logits for _, logits in sorted(caught, key=lambda pair: pair[0])]


def as_probabilities(
    patient: Patient, logits: Tensor, gradient: Tensor, live: Tensor
) -> Iterator[Finding]:
    """A cross-entropy of probabilities moves all of them; a logarithm's moves the label's."""
    others = gradient.scatter(-1, gradient.argmin(-1, keepdim=True), 0.0)
    moves_all = _are_probabilities(logits) and float(others[live].abs().sum()) > 0
    if moves_all or any(map(_are_probabilities, patient.said["read"])):
        yield Finding(
            "probabilities_as_logits",
            "What the loss gets was looked at.",
            "It is positive and sums to 1 at each position.",
        )


def _are_probabilities(values: Tensor) -> bool:
    return bool(values.min() >= 0) and float((values.sum(-1) - 1).abs().max()) < 1e-3
