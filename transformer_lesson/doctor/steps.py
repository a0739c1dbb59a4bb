"""Probes: does the optimizer hold what learns, and which gradient does a step really use?"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lesson.doctor.evaluation import as_given
from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.nothing_dropped import NoDropout
from transformer_lesson.doctor.patient import Ids, Patient, groups_of, weights_of


def optimizer(patient: Patient) -> Iterator[Finding]:
    """Compare the optimizer's weights with the model's."""
    (held_by,) = patient.given.need("optimizer")
    held = {id(p): p for p in weights_of(held_by)}
    names = {id(p): name for name, p in patient.model.named_parameters()}
    learns = patient.said.get("learns", set(names))
    experiment = "The optimizer's weights were compared with the model's."
    missing = [name for key, name in names.items() if key not in held and key in learns]
    if missing:
        yield Finding("optimizer_misses", experiment, f"It lacks {len(missing)}.", missing[0])
    foreign = [p for key, p in held.items() if key not in names]
    if foreign:
        yield Finding(
            "optimizer_foreign",
            experiment,
            f"{len(foreign)} of its weights are not the model's, "
            f"the first of shape {tuple(foreign[0].shape)}.",
        )
    decayed = [
        names[id(p)]
        for group in groups_of(held_by)
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


MOST = 0.9  # of a weight's numbers


class _Steps:
    """What steps find: the gradient before it is clipped, and the order of calls."""

    def __init__(self, patient: Patient):
        self.patient = patient
        self.weights = weights_of(patient.given.optimizer)
        self.used: list[Tensor | None] = []
        self.rates: list[float] = []
        self.events: list[str] = []
        self.unclipped: Tensor | None = None
        self.clipped: Tensor | None = None
        self.went_on = False  # backward, after clipping
        self.shrunk = False  # the gradient, after the step
        self.still: set[int] = set()  # places of half-precision weights that a step left as is

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

    def over(self, weights: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Compare the gradient after a step with the one it used, and weights with before."""
        before, after = (self.used or [None])[-1], self.gradient()
        if before is not None and after.any() and "clip" not in self.events:
            smaller = float(after.norm()) < 0.99 * float(before.norm())
            self.shrunk |= smaller and _alike(before, after) > 0.9999
        self.still = {
            k
            for k, (p, value) in enumerate(weights)
            if p.element_size() == 2 and float((p == value).float().mean()) > MOST
        }

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note each step and each clip."""
        clip_grad_norm_ = nn.utils.clip_grad_norm_

        def before_step(*_) -> None:
            """Note the gradient that the step uses."""
            self.events.append("step")
            self.rates.append(_rate_of(self.patient.given.optimizer))
            empty, now = all(p.grad is None for p in self.weights), self.gradient()
            clipped_last = self.clipped is not None and torch.equal(self.clipped, now)
            self.went_on |= self.clipped is not None and not clipped_last
            self.used.append(None if empty else self.unclipped if clipped_last else now)
            self.unclipped = self.clipped = None

        def clip(*args, **kwargs):
            """Clip, and note the gradient before and after."""
            self.events.append("clip")
            self.unclipped = self.gradient()
            grown = self.clipped is not None and not torch.equal(self.clipped, self.unclipped)
            self.went_on |= grown
            norm = clip_grad_norm_(*args, **kwargs)
            self.clipped = self.gradient()
            return norm

        undo = _before_each_step(self.patient.given.optimizer, before_step)
        nn.utils.clip_grad_norm_ = clip
        try:
            yield
        finally:
            undo()
            nn.utils.clip_grad_norm_ = clip_grad_norm_


def _rate_of(optimizer: Any) -> float:
    groups = groups_of(optimizer) or [vars(optimizer)]
    return max(float(group.get("lr", group.get("rate", 1.0))) for group in groups)


def _before_each_step(optimizer: Any, note: Callable) -> Callable[[], None]:
    """Call this before each step; return what undoes that."""
    if isinstance(optimizer, torch.optim.Optimizer):
        return optimizer.register_step_pre_hook(note).remove
    original = optimizer.step

    def step(*args, **kwargs):
        """Note, then step."""
        note()
        return original(*args, **kwargs)

    optimizer.step = step
    return lambda: vars(optimizer).pop("step", None)


def step(patient: Patient) -> Iterator[Finding]:
    """Take two steps on two batches, and write the second's gradient as a mix of both's own."""
    train_step, _, _ = patient.given.need("train_step", "optimizer", "loss")
    steps = _Steps(patient)
    with NoDropout() as dropout, patient.shaken():
        batch, flipped = patient.marked(), tuple(ids.flip(0) for ids in patient.marked())
        both = steps.of(batch), steps.of(flipped)
        weights = [(p, p.detach().clone()) for p in steps.weights]

        def run(ids: Ids) -> bool:
            """Step, put the weights back, and return whether they changed."""
            torch.manual_seed(0)
            train_step(*ids)
            changed = any(not torch.equal(p, value) for p, value in weights)
            steps.over(weights)
            with torch.no_grad():
                for p, value in weights:
                    p.copy_(value)
            return changed

        with steps.noted():
            changed = run(batch)
            steps.events.clear()
            changed = run(flipped) or changed
            order = steps.events[:2]
        experiment = "The order of calls in train_step() was noted."
        if order == ["step", "clip"]:
            yield Finding("clip_after_step", experiment, "clip_grad_norm_ is called after step().")
        elif steps.shrunk:
            experiment = "The gradient was read before step() and after train_step()."
            yield Finding("clip_after_step", experiment, "After the step it was shrunk.")
        elif steps.went_on:
            moved = "After the last clip_grad_norm_, gradients went on growing."
            yield Finding("clip_before_backward", experiment, moved)
        yield from _off_schedule(patient, steps.rates)
        if patient.given.evaluate is not None and dropout.would_drop:
            yield from _after_evaluation(patient, batch, run)
        yield from _judge(steps, flipped, both, changed)


def _after_evaluation(patient: Patient, ids: Ids, run) -> Iterator[Finding]:
    ran_in: list[bool] = []
    patient.model.train()
    patient.given.evaluate([as_given(ids)])
    with patient.hooked(lambda module, *_: ran_in.append(module.training), [patient.model]):
        run(ids)
    if ran_in and not any(ran_in):
        experiment = "evaluate(), then train_step()."
        yield Finding("trains_in_eval_mode", experiment, "The step ran in eval mode.")


def _off_schedule(patient: Patient, rates: list[float]) -> Iterator[Finding]:
    """Whether the rates of two steps follow each other in the owner's schedule."""
    rate_at, count = patient.given.schedule, patient.given.steps
    if rate_at is None or not count or len(rates) < 2:
        return
    planned = [float(rate_at(step)) for step in range(count)]

    def equal(a: float, b: float) -> bool:
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b))

    pairs = zip(planned, planned[1:], strict=False)
    if not any(equal(a, rates[0]) and equal(b, rates[1]) for a, b in pairs):
        moved = f"It was {rates[0]:.3g} and {rates[1]:.3g}, not two of schedule()'s in a row."
        if equal(*rates[:2]):
            moved = (
                f"It was {rates[0]:.3g} both times. If your scheduler is called outside of "
                "train_step(), hand over a train_step() that calls it."
            )
        experiment = "The optimizer's rate was read in two steps."
        yield Finding("rate_off_schedule", experiment, moved)


def _judge(steps: _Steps, flipped: Ids, both: tuple[Tensor, Tensor], changed: bool) -> Iterator:
    used = steps.used[:2]
    experiment = "Two steps on two batches; the gradient was read before step()."
    if len(used) < 2:
        return
    if used[1] is None or float(used[1].norm()) == 0:
        yield Finding("step_without_gradient", experiment, "All gradients are empty.")
        return
    if used[0] is None or float(used[0].norm()) == 0:
        yield Finding("stale_gradient", experiment, "The first step finds none.")
        return
    if not changed and steps.rates[-1] > 0:
        yield Finding("no_update", experiment, "There is one, and no weight changed.")
    elif steps.rates[-1] > 0:
        yield from _rounded_away(steps, used[1])
    first, second = _mix(used[1], *both)
    residual = used[1] - second * both[1]
    left_over = (
        float(residual.norm()) > 1e-3 * float(used[1].norm())
        and abs(_alike(residual, both[0])) > 0.99
    )
    picture = Picture(
        "bars",
        {"first batch": first, "second batch": second},
        "What the second step's gradient is made of",
    )
    parts = f"The second step's is {first:.2f} of the first batch's and {second:.2f} of its own."
    if left_over and second > 0.1 * first:
        yield Finding("zero_grad_forgotten", experiment, parts, picture=picture)
    elif first > 0.5 and _alike(used[1], both[0]) > 0.99:
        yield Finding("stale_gradient", experiment, parts, picture=picture)
    elif _apart(steps, used[1], both[1]):
        moved = "Each weight's is its own times another factor."
        yield Finding("clipped_apart", experiment, moved)
    elif _alike(used[1], both[1]) < 0.9999:
        yield from _of_micro_batches(steps, flipped, used[1], both[1], experiment)
    elif second > 1.5:
        yield Finding("accumulation_not_divided", experiment, parts, picture=picture)


def _rounded_away(steps: _Steps, used: Tensor) -> Iterator[Finding]:
    """Whether weights in half precision have a gradient, and are too coarse for the step."""
    gradients = used.split([p.numel() for p in steps.weights])
    names = {id(p): name for name, p in steps.patient.model.named_parameters()}
    for k in sorted(steps.still):
        weight = steps.weights[k]
        if float((gradients[k] != 0).float().mean()) > 0.5 and id(weight) in names:
            moved = f"Its numbers are {str(weight.dtype).removeprefix('torch.')}, and stay."
            experiment = "A step was taken, and each weight compared with before."
            yield Finding("step_rounded_away", experiment, moved, names[id(weight)])
            return


def _apart(steps: _Steps, used: Tensor, own: Tensor) -> bool:
    """Whether each weight's gradient points where it should, with a length of its own."""
    sizes = [p.numel() for p in steps.weights]
    pairs = [(a, b) for a, b in zip(used.split(sizes), own.split(sizes), strict=True) if b.any()]
    factors = [float(a.norm() / b.norm()) for a, b in pairs]
    even = max(factors, default=1.0) <= 1.05 * min(factors, default=1.0)
    return not even and all(_alike(a, b) > 0.9999 for a, b in pairs)


def _mix(target: Tensor, a: Tensor, b: Tensor) -> tuple[float, float]:
    """Return x and y for which x a + y b is nearest to the whole: least squares."""
    products = torch.stack([a @ a, a @ b, b @ b, a @ target, b @ target]).double()
    aa, ab, bb, aw, bw = products.tolist()
    below = aa * bb - ab * ab
    return ((bb * aw - ab * bw) / below, (aa * bw - ab * aw) / below) if below else (0.0, 0.0)


def _alike(a: Tensor, b: Tensor) -> float:
    return float(F.cosine_similarity(a, b, 0)) if a.any() and b.any() else 0.0


def _of_micro_batches(
    steps: _Steps, ids: Ids, used: Tensor, of_batch: Tensor, experiment: str
) -> Iterator[Finding]:
    """Compare a gradient with that of parts of the batch: their mean, their sum, the last one."""
    n = len(ids[0])
    parts = {}
    for count in range(2, n + 1):
        chunks = [side.chunk(count) for side in ids]
        parts[len(chunks[0])] = [steps.of(part) for part in zip(*chunks, strict=True)]
    means = [torch.stack(gradients).mean(0) for gradients in parts.values()]
    mean = max(means, key=lambda gradient: _alike(used, gradient), default=None)
    if mean is not None and _alike(used, mean) > max(0.99999, _alike(used, of_batch)):
        times = float(used.norm() / mean.norm())
        if times > 1.5:
            yield Finding(
                "accumulation_not_divided",
                experiment,
                f"It is {times:.2f} times the mean of the micro-batches'.",
            )
        else:
            yield Finding(
                "accumulation_mean_of_means",
                experiment,
                "It is the mean of micro-batches' means, not of all tokens.",
            )
    elif any(_alike(used, gradients[-1]) > 0.999 for gradients in parts.values()):
        yield Finding("accumulation_lost", experiment, "It is that of the batch's last part alone.")
