"""Probe: weights, rows and positions that learn nothing, and weights that nobody lists."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Patient
from transformer_lesson.doctor.tensors import differ, noise_like
from transformer_lesson.doctor.wiring import MATRICES

FEW = 4  # norms of a layer, say


def parameters(patient: Patient) -> Iterator[Finding]:
    """Follow the loss back to its leaves: all that matters must learn, and be listed."""
    first = _leaves(patient.loss(*patient.batch))
    loss = patient.loss(*patient.batch)
    second = _leaves(loss)
    listed = {id(p) for p in patient.model.parameters()}
    strange = {key: tensor for key, tensor in first.items() if key not in listed}
    if strange:
        stay = any(second.get(key) is tensor for key, tensor in strange.items())
        code = "unregistered_parameters" if stay else "parameters_made_in_forward"
        count = sum(tensor.numel() for tensor in strange.values())
        yield Finding(
            code,
            "The loss was followed back to its weights.",
            f"{len(strange)} tensors of {count:,} numbers are not the model's.",
        )
    patient.model.zero_grad(set_to_none=True)
    loss.backward()
    patient.said["learns"] = {id(p) for p in patient.model.parameters() if p.grad is not None}
    missing = [
        (name, p)
        for name, p in patient.model.named_parameters()
        if p.requires_grad and p.grad is None
    ]
    yield from _without_gradient(patient, missing)
    yield from _unused_rows(patient)
    yield from _unused_layers(patient)
    yield from _dead_rows(patient)
    patient.model.zero_grad(set_to_none=True)


def _leaves(loss: Tensor) -> dict[int, Tensor]:
    """Return the tensors whose gradients this loss would fill."""
    seen, todo, leaves = set(), [loss.grad_fn], {}
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves[id(node.variable)] = node.variable
        todo += [parent for parent, _ in node.next_functions]
    return leaves


def _without_gradient(patient: Patient, missing: list[tuple[str, nn.Parameter]]) -> Iterator:
    texts = patient.own_batch()
    base = patient.logits(*texts)
    cut, unused = [], []
    for name, p in missing:
        value = p.detach().clone()
        with torch.no_grad():
            p.add_(noise_like(p).to(p) + 0.5)
        (cut if differ(base, patient.logits(*texts)) else unused).append(name)
        with torch.no_grad():
            p.copy_(value)
    for code, names, moved in (
        ("gradient_cut", cut, "changing them moves the outputs"),
        ("unused_parameters", unused, "changing them moves no output"),
    ):
        if names:
            yield Finding(
                code,
                "The loss was followed back to its weights.",
                f"{len(names)} get no gradient, and {moved}.",
                _few(names),
            )


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _unused_rows(patient: Patient) -> Iterator[Finding]:
    """Of a matrix that learns, an eighth or more in one piece that gets no gradient.

    The head and the tables are left out: tokens that don't occur have none.
    """
    size = patient.logits(*patient.texts(2, 9, 7)).shape[-1]
    for name, module in patient.model.named_modules():
        weight = getattr(module, "weight", None)
        if type(module).__name__ not in MATRICES or weight is None or weight.grad is None:
            continue
        for axis in (0, 1):
            if weight.shape[axis] == size or not bool(weight.grad.any()):
                continue
            empty = (weight.grad.abs().amax(1 - axis) == 0).int().tolist()
            longest = max(map(len, "".join(map(str, empty)).split("0")))
            if longest >= max(8, len(empty) // 8):
                yield Finding(
                    "unused_rows",
                    "The loss was followed back to its weights.",
                    f"{longest} of {len(empty)} rows in one piece get no gradient.",
                    f"{name}.weight",
                )
                return


def _unused_layers(patient: Patient) -> Iterator[Finding]:
    """Of a tensor that holds a matrix or a few vectors for each layer, those without a gradient.

    Experts are left out: a text needs not all of them.
    """
    for name, p in patient.model.named_parameters():
        if p.dim() < 3 or p.grad is None or "expert" in name.lower():
            continue
        few_vectors = p.dim() == 3 and p.shape[1] <= FEW
        empty = ~(p.grad.flatten(0, 1) if few_vectors else p.grad.flatten(1)).any(1)
        if bool(empty.any()) and not bool(empty.all()):
            yield Finding(
                "unused_rows",
                "The loss was followed back to its weights.",
                f"{int(empty.sum())} of {len(empty)} parts get no gradient.",
                name,
            )
            return


def _dead_rows(patient: Patient) -> Iterator[Finding]:
    """Of a table that reads 0, 1, 2, ..., each row that was read must have a gradient."""
    for table, ids in patient.reads(*patient.texts(2, 9, 7)):
        if ids.dim() == 0:
            continue
        row = ids.reshape(-1, ids.shape[-1])[0]
        counts = len(row) > 3 and bool((row[1:] - row[:-1] == 1).all())
        weight = table.weight if isinstance(table, nn.Embedding) else table
        if counts and weight.is_leaf and weight.grad is not None:
            dead = _without(weight, row)
            if not dead or len(dead) >= len(row) // 2:
                continue
            with patient.shaken():  # branches that begin at zero let nothing pass
                patient.model.zero_grad(set_to_none=True)
                patient.loss(*patient.batch).backward()
            dead = sorted({*dead} & {*_without(weight, row)})
            if dead:
                yield Finding(
                    "dead_position",
                    "The loss was followed back to the positions.",
                    f"Row {int(row[dead[0]])} of the table gets no gradient.",
                )
                return


def _without(table: Tensor, rows: Tensor) -> list[int]:
    """Return which of a table's rows have no gradient."""
    return (table.grad[rows].abs().sum(-1) == 0).nonzero().flatten().tolist()
