"""Probes: does the optimizer hold what learns, and which gradient does a step really use?"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lesson.doctor.evaluation import as_given
from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.patient import Ids, Patient


def optimizer(patient: Patient) -> Iterator[Finding]:
    """Compare the optimizer's weights with the model's."""
    (held_by,) = patient.given.need("optimizer")
    held = {id(p): p for group in held_by.param_groups for p in group["params"]}
    names = {id(p): name for name, p in patient.model.named_parameters()}
    learns = patient.said.get("learns", set(names))
    told = "The optimizer's weights were compared with the model's."
    missing = [name for key, name in names.items() if key not in held and key in learns]
    if missing:
        yield Finding("optimizer_misses", told, f"It lacks {len(missing)}.", missing[0])
    foreign = [p for key, p in held.items() if key not in names]
    if foreign:
        yield Finding(
            "optimizer_foreign",
            told,
            f"{len(foreign)} of its weights are not the model's, "
            f"the first of shape {tuple(foreign[0].shape)}.",
        )
    decayed = [
        names[id(p)]
        for group in held_by.param_groups
        if group.get("weight_decay")
        for p in group["params"]
        if p.dim() < 2 and id(p) in names
    ]
    if decayed:
        yield Finding(
            "decay_on_norms",
            "The groups with weight decay were looked at.",
            f"{len(decayed)} of their weights are vectors.",
            decayed[0],
        )


class _Steps:
    """What steps find: the gradient before it is clipped, and the order of calls."""

    def __init__(self, patient: Patient):
        self.patient = patient
        groups = patient.given.optimizer.param_groups
        self.weights = [p for group in groups for p in group["params"]]
        self.used: list[Tensor | None] = []
        self.rates: list[float] = []
        self.events: list[str] = []
        self.unclipped: Tensor | None = None

    def gradient(self) -> Tensor:
        """Return the gradient that the weights hold now."""
        return torch.cat(
            [
                (p.grad if p.grad is not None else torch.zeros_like(p)).detach().flatten().float()
                for p in self.weights
            ]
        )

    def of(self, ids: Ids) -> Tensor:
        """Return the gradient of the owner's loss of these ids."""
        self.patient.model.zero_grad(set_to_none=True)
        self.patient.loss(*ids, train=True).backward()
        gradient = self.gradient()
        self.patient.model.zero_grad(set_to_none=True)
        return gradient

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note each step and each clip."""
        clip_grad_norm_ = nn.utils.clip_grad_norm_

        def before_step(*_) -> None:
            self.events.append("step")
            self.rates.append(max(g["lr"] for g in self.patient.given.optimizer.param_groups))
            empty = all(p.grad is None for p in self.weights)
            found = self.unclipped if self.unclipped is not None else self.gradient()
            self.used.append(None if empty else found)
            self.unclipped = None

        def clip(*args, **kwargs):
            if self.events[-1:] != ["step"] and self.unclipped is None:
                self.unclipped = self.gradient()
            self.events.append("clip")
            return clip_grad_norm_(*args, **kwargs)

        hook = self.patient.given.optimizer.register_step_pre_hook(before_step)
        nn.utils.clip_grad_norm_ = clip
        try:
            yield
        finally:
            hook.remove()
            nn.utils.clip_grad_norm_ = clip_grad_norm_


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[list[float]]:
    kept = [(one, one.p) for one in model.modules() if isinstance(one, nn.Dropout)]
    for one, _ in kept:
        one.p = 0.0
    try:
        yield [p for _, p in kept]
    finally:
        for one, p in kept:
            one.p = p


def step(patient: Patient) -> Iterator[Finding]:
    """Take two steps on two batches, and write the second's gradient as a mix of both's own."""
    train_step, _, _ = patient.given.need("train_step", "optimizer", "loss")
    steps, ran_in = _Steps(patient), []
    with _without_dropout(patient.model) as rates, patient.shaken():
        one, two = patient.marked(), tuple(ids.flip(0) for ids in patient.marked())
        both = steps.of(one), steps.of(two)
        weights = [(p, p.detach().clone()) for p in steps.weights]

        def run(ids: Ids) -> bool:
            """Step, put the weights back, and return whether they changed."""
            torch.manual_seed(0)
            train_step(*ids)
            changed = any(not torch.equal(p, value) for p, value in weights)
            with torch.no_grad():
                for p, value in weights:
                    p.copy_(value)
            return changed

        with steps.noted():
            changed = run(one)
            steps.events.clear()
            changed = run(two) or changed
            order = steps.events[:2]
        if order == ["step", "clip"]:
            yield Finding(
                "clip_after_step",
                "The order of calls in train_step() was noted.",
                "clip_grad_norm_ is called after step().",
            )
        if patient.given.evaluate is not None and any(rates):
            patient.model.train()
            patient.given.evaluate([as_given(one)])
            with patient.hooked(lambda m, *_: ran_in.append(m.training), [patient.model]):
                run(one)
            if ran_in and not any(ran_in):
                yield Finding(
                    "trains_in_eval_mode",
                    "evaluate(), then train_step().",
                    "The step ran in eval mode.",
                )
        yield from _judge(steps, two, both, changed)


def _judge(steps: _Steps, two: Ids, both: tuple[Tensor, Tensor], changed: bool) -> Iterator:
    used = steps.used[:2]
    told = "Two steps on two batches; the gradient was read before step()."
    if len(used) < 2:
        return
    if used[1] is None or float(used[1].norm()) == 0:
        yield Finding("step_without_gradient", told, "All gradients are empty.")
        return
    if used[0] is None or float(used[0].norm()) == 0:
        yield Finding("stale_gradient", told, "The first step finds none.")
        return
    if not changed and steps.rates[-1] > 0:
        yield Finding("no_update", told, "There is one, and no weight changed.")
    first, second = _mix(used[1], *both)
    picture = Picture(
        "bars",
        {"first batch": first, "second batch": second},
        "What the second step's gradient is made of",
    )
    parts = f"The second step's is {first:.2f} of the first batch's and {second:.2f} of its own."
    if first > 0.3 and second > 0.3:
        yield Finding("zero_grad_forgotten", told, parts, picture=picture)
    elif first > 0.5:
        yield Finding("stale_gradient", told, parts, picture=picture)
    elif _alike(used[1], both[1]) < 0.9999:
        yield from _of_micro_batches(steps, two, used[1], both[1], told)
    elif second > 1.5:
        yield Finding("accumulation_not_divided", told, parts, picture=picture)


def _mix(whole: Tensor, a: Tensor, b: Tensor) -> tuple[float, float]:
    """Return x and y for which x a + y b is nearest to the whole: least squares."""
    products = torch.stack([a @ a, a @ b, b @ b, a @ whole, b @ whole]).double()
    aa, ab, bb, aw, bw = products.tolist()
    below = aa * bb - ab * ab
    return ((bb * aw - ab * bw) / below, (aa * bw - ab * aw) / below) if below else (0.0, 0.0)


def _alike(a: Tensor, b: Tensor) -> float:
    return float(F.cosine_similarity(a, b, 0)) if a.any() and b.any() else 0.0


def _of_micro_batches(
    steps: _Steps, ids: Ids, used: Tensor, own: Tensor, told: str
) -> Iterator[Finding]:
    """Compare a gradient with that of parts of the batch: their mean, their sum, the last one."""
    n = len(ids[0])
    sizes = [size for size in (n // 2, n // 4, 1) if size and n % size == 0]
    parts = {
        size: [steps.of(tuple(side[i : i + size] for side in ids)) for i in range(0, n, size)]
        for size in sizes
    }
    means = [torch.stack(gradients).mean(0) for gradients in parts.values()]
    mean = max(means, key=lambda one: _alike(used, one), default=None)
    if mean is not None and _alike(used, mean) > max(0.99999, _alike(used, own)):
        times = float(used.norm() / mean.norm())
        if times > 1.5:
            yield Finding(
                "accumulation_not_divided",
                told,
                f"It is {times:.2f} times the mean of the micro-batches'.",
            )
        else:
            yield Finding(
                "accumulation_mean_of_means",
                told,
                "It is the mean of micro-batches' means, not of all tokens.",
            )
    elif any(_alike(used, gradients[-1]) > 0.999 for gradients in parts.values()):
        yield Finding("accumulation_lost", told, "It is that of the batch's last part alone.")
