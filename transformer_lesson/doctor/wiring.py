"""Probes: layers that are one, norms that do not normalize, blocks without residual."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Call, Patient
from transformer_lesson.doctor.tensors import differ, logits_of, noise_like, tensors_in

MATRICES = ("Linear", "Conv1D", "NonDynamicallyQuantizableLinear")


def norms(patient: Patient) -> Iterator[Finding]:
    """Hand ten times its input to each norm: what it returns must stay as large."""
    done: set[str] = set()
    for call in patient.record(*patient.texts(2, 9, 7)):
        kind = type(call.module).__name__
        if "norm" not in kind.lower() or "batchnorm" in kind.lower() or kind in done:
            continue
        if len(call.inputs) != 1 or not call.outputs or list(call.module.children()):
            continue
        done.add(kind)
        x = call.inputs[0] + 0.1 * noise_like(call.inputs[0]).to(call.inputs[0])
        call.module.eval()
        try:
            with torch.no_grad():
                small, large = (
                    logits_of(call.module(factor * x)).float() for factor in (10.0, 100.0)
                )
        except (TypeError, RuntimeError):  # it needs more than its input
            continue
        grown = float(large.std() / (small.std() + 1e-12))
        if not 0.5 < grown < 2:
            yield Finding(
                "norm_without_effect",
                f"A {kind} got inputs ten times as large.",
                f"Its outputs became {grown:.3g} times as large.",
                _named(call),
            )
            return


def layers(patient: Patient) -> Iterator[Finding]:
    """Compare layers of one list with each other, and the head with the table."""
    stacks: dict[str, list[nn.Module]] = {}
    for name, module in patient.model.named_modules(remove_duplicate=False):
        parent, _, last = name.rpartition(".")
        of_list = isinstance(patient.model.get_submodule(parent), (nn.ModuleList, nn.Sequential))
        if last.isdigit() and of_list:
            stacks.setdefault(parent, []).append(module)
    for parent, members in stacks.items():
        pairs = list(zip(members, members[1:], strict=False))
        shared = [set(a.parameters()) & set(b.parameters()) for a, b in pairs]
        if any(shared):
            whole = any(a is b and weights for (a, b), weights in zip(pairs, shared, strict=True))
            yield Finding(
                "layers_share_weights",
                "Layers of one list were compared.",
                "Two are one module." if whole else "Two have weights in common.",
                parent,
            )
        elif any(_start_equal(a, b) for a, b in pairs):
            yield Finding(
                "layers_start_equal",
                "Layers of one list were compared.",
                "Two have equal matrices.",
                parent,
            )
    yield from _tie(patient)


def _start_equal(a: nn.Module, b: nn.Module) -> bool:
    if a is b or type(a) is not type(b):
        return False
    pairs = [
        (p, q)
        for p, q in zip(a.parameters(), b.parameters(), strict=False)
        if p.dim() > 1 and p.shape == q.shape
    ]
    fresh = bool(pairs) and all(p is not q and torch.equal(p, q) for p, q in pairs)
    return fresh and any(float(p.float().std()) > 0 for p, _ in pairs)


def _tie(patient: Patient) -> Iterator[Finding]:
    tied = patient.given.tied
    if tied is None:
        tied = getattr(getattr(patient.model, "config", None), "tie_word_embeddings", None)
    texts = patient.texts(2, 9, 7)
    size = patient.logits(*texts).shape[-1]
    called = [call.module for call in patient.record(*texts)]
    heads = [
        module for module in called if isinstance(module, nn.Linear) and module.out_features == size
    ][-1:]
    tables = patient.tables_of(texts[-1], *texts)
    for table in (weight for weight in tables if isinstance(weight, nn.Embedding)):
        for head in heads:
            alike = table.weight.shape == head.weight.shape
            if alike and table.weight.data_ptr() != head.weight.data_ptr():
                if tied or torch.equal(table.weight, head.weight):
                    why = "They should be tied." if tied else "They start with equal numbers."
                    yield Finding(
                        "tie_lost",
                        "The table's weights and the head's were compared.",
                        f"{why} They are two tensors.",
                    )
                    return


def blocks(patient: Patient) -> Iterator[Finding]:
    """Enlarge the input of blocks: what x + f(norm(x)) returns must grow with it.

    Of each stack: the first block, one in the middle and the last.
    """
    texts = patient.texts(2, 9, 7)
    calls = patient.record(*texts)
    stacks: dict[str, list[Call]] = {}
    for call in patient.blocks(calls, each=True):
        stacks.setdefault(call.name.rpartition(".")[0], []).append(call)
    some = [
        stack[k] for stack in stacks.values() for k in sorted({0, len(stack) // 2, len(stack) - 1})
    ]
    wrong = [
        (_residual(patient, call, texts, calls), call)
        for call in some
        if call.inputs[0].shape == call.outputs[0].shape
    ]
    for code in ("residual_missing", "residual_after_norm"):
        at = next((call for fault, call in wrong if fault == code), None)
        if at is not None:
            yield Finding(
                code,
                "The block's input was enlarged 300 and 600 times.",
                "Its output was the same both times.",
                _named(at),
            )
    yield from _linear_networks(calls)
    yield from _matrix_after_matrix(patient)


def _named(call: Call) -> str:
    return f"{call.name} ({type(call.module).__name__})"


def _enlarged(patient: Patient, module: nn.Module, texts, factor: float) -> Tensor:
    """Return what a module returns if its input is this many times as large."""

    def change(module, args, kwargs):
        """Enlarge the stream among the arguments."""
        if args:
            return (args[0] * factor, *args[1:]), kwargs

        def is_stream(value) -> bool:
            """Whether this is (text, token, number)."""
            return torch.is_tensor(value) and value.is_floating_point() and value.dim() == 3

        key = next(key for key, value in kwargs.items() if is_stream(value))
        return args, {**kwargs, key: kwargs[key] * factor}

    outputs: list[Tensor] = []
    hook = module.register_forward_pre_hook(change, with_kwargs=True)
    try:
        with patient.hooked(lambda *call: outputs.append(next(tensors_in(call[3]))), [module]):
            patient.model.eval()
            with torch.enable_grad():
                (patient.given.forward or patient.model)(*texts)
    finally:
        hook.remove()
    return outputs[0].detach()


def _residual(patient: Patient, call: Call, texts, calls: list[Call]) -> str:
    """Return what is wrong with a block's residual, or ""."""
    large, larger = (_enlarged(patient, call.module, texts, factor) for factor in (300.0, 600.0))
    if float((larger - large).abs().max()) >= 1e-2 * float(large.std()):
        return ""
    inputs, outputs = call.inputs[0], call.outputs[0]
    if float(F.cosine_similarity(inputs, outputs, dim=-1).mean()) < 0.2:
        return "residual_missing"
    inside = [
        inner.module
        for inner in calls
        if inner.name.startswith(f"{call.name}.") and not list(inner.module.children())
    ]
    post_norm = bool(inside) and "norm" in type(inside[-1]).__name__.lower()
    return "" if post_norm else "residual_after_norm"


def _linear_networks(calls: list[Call]) -> Iterator[Finding]:
    """Whether f(x + y) = f(x) + f(y) - f(0) for a network that should not be linear."""
    done = set()
    for call in calls:
        module = call.module
        kinds = [type(part).__name__ for part in module.modules()]
        matrices = sum(kind in MATRICES for kind in kinds)
        attends = any(word in kind.lower() for kind in kinds for word in ("attention", "attn"))
        named = f"{call.name} {kinds[0]}".lower()
        of_one = len(call.inputs) == 1 and call.outputs and not attends and matrices >= 2
        if id(module) in done or not of_one or call.inputs[0].shape != call.outputs[0].shape:
            continue
        if not any(word in named for word in ("mlp", "ff", "feed", "ffn")):
            continue
        done.add(id(module))
        x = call.inputs[0]
        y = noise_like(x).to(x) * x.std()
        module.eval()
        try:
            with torch.no_grad():
                f = [logits_of(module(value)) for value in (x, y, x + y, torch.zeros_like(x))]
        except (TypeError, RuntimeError, AttributeError):  # it needs more than its input
            continue
        begins_at_zero = not differ(f[0], f[3])  # a branch may, on purpose
        deviation = float((f[2] - f[0] - f[1] + f[3]).abs().max())
        if not begins_at_zero and deviation < 1e-4 * float(f[2].std() + 1e-9):
            yield Finding(
                "linear_feed_forward",
                "Its outputs for x, y and x + y were compared.",
                "f(x + y) = f(x) + f(y) - f(0).",
                _named(call),
            )
            return


def _matrix_after_matrix(patient: Patient) -> Iterator[Finding]:
    """Whether a matrix reads what a larger one has just returned, with nothing in between.

    A smaller one in between is low rank on purpose (LoRA).
    """
    returned: dict[int, tuple[str, nn.Module, Tensor]] = {}
    pairs: list[tuple[str, str]] = []
    names = {module: name for name, module in patient.model.named_modules()}

    def note(module, args, kwargs, output) -> None:
        """Note what a matrix reads and returns."""
        x = next(tensors_in((args, kwargs)), None)
        before = returned.get(id(x))
        if before is not None and before[2] is x and x.shape[-1] > output.shape[-1]:
            pairs.append((before[0], names[module]))
        returned[id(output)] = names[module], module, output

    matrices = [module for module in names if type(module).__name__ in MATRICES]
    patient.model.eval()
    with patient.hooked(note, matrices), torch.enable_grad():
        (patient.given.forward or patient.model)(*patient.texts(2, 9, 7))
    if pairs and "linear_feed_forward" not in patient.found:
        first, second = pairs[0]
        yield Finding(
            "linear_feed_forward",
            "What each matrix reads was noted.",
            f"{second} reads what {first} has returned, unchanged.",
            second,
        )
