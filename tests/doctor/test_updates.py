"""An optimizer of one's own: each fault of its step by name, and nothing of a sound one."""

import copy

import pytest
import torch
from torch import nn

from tests.doctor.published import script as published
from tests.doctor.tiny import script
from transformer_lesson.doctor import examine
from transformer_lesson.doctor.patient import Given, Patient
from transformer_lesson.doctor.updates import updates

TEXT = published("functional_scan")
ADAMW = TEXT[TEXT.index("class AdamW") : TEXT.index("def schedule")]
FAULTS = {
    "optimizer_climbs": [("p.sub_(", "p.add_(")],
    "moments_not_corrected": [(' / (1 - group["b2"] ** s["t"])', "")],
    "step_depends_on_scale": [("v_hat.sqrt()", "v_hat")],
    "rate_ignored": [('p.sub_(group["lr"]', 'p.sub_(self.defaults["lr"]')],
    "decay_grows_weights": [
        ('1 - group["lr"] * group["decay"]', '1 + group["lr"] * group["decay"]')
    ],
    "decay_without_rate": [('1 - group["lr"] * group["decay"]', '1 - group["decay"]')],
    "decay_without_effect": [('p.mul_(1 - group["lr"] * group["decay"])', "pass")],
    "decay_through_moments": [
        ("grad, s = p.grad,", 'grad, s = p.grad + group["decay"] * p,'),
        ('p.mul_(1 - group["lr"] * group["decay"])', "pass"),
    ],
    "momentum_lost": [
        ('s["m"].mul_(group["b1"]).add_(grad, alpha=1 - group["b1"])', 's["m"] = grad')
    ],
}


class Momentum:
    """An optimizer that is no subclass of PyTorch's, with one memory for all weights if shared."""

    def __init__(self, params, lr=0.1, momentum=0.9, shared=False):
        self.params, self.lr, self.momentum = list(params), lr, momentum
        self.kept = [torch.zeros_like(p) for p in self.params]
        self.shared, self.steps = shared, 0

    @torch.no_grad()
    def step(self):
        """Add to what is kept, and go down."""
        self.steps += 1
        for p, kept in zip(self.params, self.kept, strict=True):
            kept.mul_(self.momentum).add_(p.grad)
            if self.shared:
                kept += 0.1 * self.kept[0].sum()
            p.sub_(self.lr * kept)


def said(optimizer):
    """Return what the probe finds of an optimizer."""
    batch = torch.randint(1, 9, (3, 5))
    patient = Patient(nn.Embedding(9, 9), batch, "causal", None, Given(optimizer=optimizer))
    return [one.code for one in updates(patient)]


def adamw(*changes):
    """Return the stranger's AdamW, changed, with weights of two shapes."""
    text = ADAMW
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    names = {"torch": torch}
    exec(text, names)
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 4))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return names["AdamW"]([{"params": matrices, "decay": 0.1}, {"params": vectors}], lr=1e-3)


def test_of_sound_optimizers_nothing_is_said():
    assert said(adamw()) == said(Momentum(nn.Linear(3, 4).parameters())) == []
    own = type("AdamW", (torch.optim.AdamW,), {})
    assert said(own(nn.Linear(3, 4).parameters(), lr=0.01, weight_decay=0.1)) == []


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_of_a_step_is_named_first(code):
    assert said(adamw(*FAULTS[code]))[0] == code


def test_a_shared_state_is_named():
    assert said(Momentum(nn.Linear(3, 4).parameters(), shared=True)) == ["weights_share_state"]


def test_pythons_own_classes_are_examined_and_left_as_they_were():
    handed = script()
    del handed["schedule"], handed["steps"]
    optimizer = Momentum(handed["model"].parameters())

    def train_step(ids):
        for p in optimizer.params:
            p.grad = None
        handed["model"].train()
        handed["loss"](ids).backward()
        optimizer.step()

    before = copy.deepcopy(optimizer.kept)
    report = examine(**(handed | {"optimizer": optimizer, "train_step": train_step}))
    assert "step" in report.seconds and "step" not in report.skipped
    assert report.codes == []
    assert optimizer.steps == 0 and "step" not in vars(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(optimizer.kept, before, strict=True))
