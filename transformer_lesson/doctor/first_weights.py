"""Probe: do the first weights suit each other? Only suspects: many scales train, some badly."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.doctor.attention import watch
from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.paths import Node, Stack, stacks
from transformer_lesson.doctor.patient import Patient, Skip

LARGE, SMALL = 1.8, 0.02  # times what it reads; usual ones: 0.06 (0.02 at d = 32) to 1.4 (He's)
FAINT = 0.1  # the root mean square of what a norm returns; usually 1
SHARP = 2.0  # the standard deviation of a fresh model's scores; usual ones: at most 1.4
NEARLY = 0.08  # relative
LEAST = 64  # numbers whose deviation says something


def first_weights(patient: Patient) -> Iterator[Finding]:
    """Compare the deviations of a fresh model's matrices with what they read, and each other."""
    if not patient.given.fresh:
        raise Skip("a trained model")
    experiment = "The deviations of the first weights were compared."
    layers = _unlike_layers(patient)
    if layers:
        code, moved, where = layers
        yield Finding(code, experiment, moved, where)
    for stack in stacks(patient):
        matrices = _matrices(stack)
        for code, matrix in _sizes(matrices):
            moved = f"It makes what it reads {matrix.gain:.2g} times as large."
            yield Finding(code, experiment, moved, _name(patient, matrix.weight))
        wrong = _scaled_instead(stack, matrices)
        if wrong:
            moved = "It is scaled by 1/√(2 layers), and the branch's last matrix is not."
            yield Finding("wrong_matrix_scaled", experiment, moved, _name(patient, wrong.weight))
    yield from _flat(patient)
    yield from _faint_norms(patient)
    yield from _sharp(patient)
    yield from _stuck(patient)


class Matrix(NamedTuple):
    """A weight where words pass it: its deviation, the numbers that it reads."""

    node: Node
    weight: Tensor
    deviation: float
    reads: int

    @property
    def gain(self) -> float:
        """How many times as large it makes what it reads."""
        return self.deviation * math.sqrt(self.reads)


def _matrices(stack: Stack) -> list[Matrix]:
    """Return the matrices of the stack's sublayers, in their order."""
    graph, matrices = stack.graph, []
    for node in graph.in_order():
        weight = graph.weight(node) if node in stack.products & stack.counted else None
        if weight is not None and weight.dim() > 1 and weight.numel() >= LEAST:
            (data,) = [operand for operand in graph.reads[node] if operand in graph.from_words][:1]
            reads = int(data._input_metadata[0].shape[-1])
            matrices.append(Matrix(node, weight, float(weight.detach().float().std()), reads))
    return matrices


def _name(patient: Patient, weight: Tensor) -> str:
    return next((name for name, p in patient.model.named_parameters() if p is weight), "")


def _sizes(matrices: list[Matrix]) -> Iterator[tuple[str, Matrix]]:
    """Yield the first matrix that is too large, and the first that is too small."""
    for code, some in (
        ("first_weights_large", [matrix for matrix in matrices if matrix.gain > LARGE]),
        ("first_weights_small", [matrix for matrix in matrices if 0 < matrix.gain < SMALL]),
    ):
        if some:
            yield code, some[0]


def _scaled_instead(stack: Stack, matrices: list[Matrix]) -> Matrix | None:
    """Return a matrix inside a branch that starts smaller, as its last one should, and does not."""
    layers = len(stack.last())
    graph, passed = stack.graph, stack.products | stack.meetings
    reach = graph.distances(stack.ends, graph.reads, stack.counted)
    inner = [matrix for matrix in matrices if reach.get(matrix.node, 0) > 0]
    for matrix in inner:
        on = graph.distances([matrix.node], graph.readers, closed=passed - {matrix.node})
        if any(other in on for other in stack.meetings):
            continue  # a query's may be smaller
        usual = [
            x.deviation for x in inner if x.reads == matrix.reads and x.node is not matrix.node
        ]
        last = [x for x in matrices if x.node in on and reach.get(x.node, 1) == 0]
        if not usual or not last:
            continue
        size = sorted(usual)[len(usual) // 2]
        gain = size * math.sqrt(matrix.reads)
        last_is_usual = size and any(
            min(abs(x.deviation / size - 1), abs(x.gain / gain - 1)) < NEARLY for x in last
        )
        if last_is_usual and abs(matrix.deviation / size * math.sqrt(2 * layers) - 1) < NEARLY:
            return matrix
    return None


def _unlike_layers(patient: Patient) -> tuple[str, str, str] | None:
    """Return how a matrix differs from layer to layer, or does not, and its name."""
    alike: dict[str, list[tuple[str, float]]] = {}
    for name, p in patient.model.named_parameters():
        if p.dim() < 2 or not p.is_floating_point():
            continue
        value, of_layers = p.detach().float(), p.dim() > 2 and "expert" not in name
        if re.search(r"\.\d+(\.|$)", f".{name}") and p.numel() >= LEAST:
            deviations = [(name, float(value.std()))]
        elif of_layers and not isinstance(_owner(patient, name), (nn.Conv1d, nn.Conv2d)):
            deviations = [(name, float(layer.std())) for layer in value if layer.numel() >= LEAST]
            if len(deviations) > 1 and deviations[0][1] > 0 and torch.equal(value[0], value[1]):
                return "layers_start_equal", "Two have equal matrices.", name
        else:
            continue
        kind = type(_owner(patient, name)).__name__  # an embedding is not like a linear layer
        pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "#", f"{kind}.{name}")
        alike.setdefault(pattern, []).extend(deviations)
    for deviations in alike.values():
        sizes = [size for _, size in deviations]
        if (
            sizes
            and min(sizes) > 0
            and max(sizes) > 1.5 * min(sizes)
            and _one_shape(patient, deviations)
        ):
            moved = f"From {min(sizes):.2g} to {max(sizes):.2g} in layers that are alike."
            return "layers_start_unlike", moved, deviations[sizes.index(max(sizes))][0]
    return None


def _owner(patient: Patient, name: str) -> nn.Module:
    return patient.model.get_submodule(name.rpartition(".")[0])


def _one_shape(patient: Patient, deviations: list[tuple[str, float]]) -> bool:
    return len({patient.model.get_parameter(name).shape for name, _ in deviations}) == 1


def _stuck(patient: Patient) -> Iterator[Finding]:
    """Whether a matrix of zeros gets a gradient of zeros, and again after all others moved."""
    if patient.given.loss is None:
        return
    stuck: list[str] = []
    for _ in range(3):
        patient.model.zero_grad(set_to_none=True)
        patient.loss(*patient.batch).backward()
        stuck = []
        for name, p in patient.model.named_parameters():
            if p.grad is None:
                continue
            if p.grad.any():
                with torch.no_grad():
                    p.sub_(0.01 * p.grad / p.grad.abs().max())
            elif p.dim() > 1 and not p.any():
                stuck.append(name)
    patient.model.zero_grad(set_to_none=True)
    patient.restore()
    if stuck:
        moved = f"{len(stuck)} are zeros, and their gradient is zeros, too."
        yield Finding("zeros_stay", "The loss was followed back to its weights.", moved, stuck[0])


def _flat(patient: Patient) -> Iterator[Finding]:
    """Whether a table of words is all zeros, or a matrix begins with equal rows or columns."""
    experiment = "The numbers of the first weights were compared."
    texts = patient.aside()
    tables = {
        table.weight if isinstance(table, nn.Embedding) else table
        for ids in texts
        for table in patient.tables_of(ids, *texts)
    }
    for name, p in patient.model.named_parameters():
        if p in tables and not p.any():
            yield Finding("first_weights_small", experiment, "All words have zeros.", name)
            return
        if p.dim() == 2 and min(p.shape) > 3 and float(p.detach().float().std()) > 0:
            for axis, what in enumerate(("rows", "columns")):
                if float(p.detach().float().std(axis).max()) < 1e-6:
                    yield Finding(
                        "rows_start_equal", experiment, f"All its {what} are equal.", name
                    )
                    return


def _faint_norms(patient: Patient) -> Iterator[Finding]:
    """Whether a norm's gains begin so small that what it returns vanishes; zeros may be meant."""
    for call in patient.record(*patient.aside()):
        gains = getattr(call.module, "weight", None)
        if "norm" not in type(call.module).__name__.lower() or not torch.is_tensor(gains):
            continue
        size = float(call.outputs[0].float().square().mean().sqrt()) if call.outputs else 1.0
        if gains.any() and size < FAINT:
            moved = f"What this norm returns has a root mean square of {size:.2g}, in place of 1."
            experiment = "The fresh model read a batch."
            yield Finding("first_weights_small", experiment, moved, f"{call.name}.weight")
            return


def _sharp(patient: Patient) -> Iterator[Finding]:
    """Whether a fresh model's scores are so far apart that its attention is nearly one-hot."""
    texts = patient.aside()
    watched, lengths = watch(patient, texts), {ids.shape[1] for ids in texts}
    all_scores = [
        call.scores for call in watched.softmaxes if set(call.scores.shape[-2:]) <= lengths
    ]
    all_scores += [
        computed for call in watched.attentions if (computed := call.scores()) is not None
    ]
    for scores in all_scores:
        rows = [row[row > -1e3] for row in scores.reshape(-1, scores.shape[-1]).float()]
        spread = [float(row.std()) for row in rows if len(row) > 2]
        if spread and sum(spread) / len(spread) > SHARP:
            moved = f"A query's scores have a deviation of {sum(spread) / len(spread):.2g}."
            yield Finding("attention_starts_sharp", "The fresh model read a batch.", moved)
            return
