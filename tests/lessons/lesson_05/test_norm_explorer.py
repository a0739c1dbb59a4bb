"""What a norm does to six tokens, in the page: every number against PyTorch's norms."""

import re
from itertools import product

import torch

from tests.explorables.shown import assert_agree, lines, same_numbers
from transformer_lesson.explorables import NormExplorer
from transformer_lesson.lessons.lesson_05.norm_explorer import BLOCK, TOKENS
from transformer_lesson.model.norm import layer_norm, rms_norm

NORMS = ["layer", "rms", "batch"]
BOTH = "{}: mean {:.2f}, deviation {:.2f}"
NAMES = ["as they come in", "minus the mean", "divided", "times gamma", "plus beta"]
STATES = [
    {"shift": 0.0, "scale": 1.0, "gamma": 1.0, "beta": 0.0, "epsilon": 1e-5, "token": 1},
    {"shift": 3.0, "scale": 2.5, "gamma": -1.5, "beta": 0.75, "epsilon": 0.1, "token": 5},
    {"shift": -5.0, "scale": 0.0, "gamma": 2.0, "beta": -2.0, "epsilon": 1e-8, "token": 0},
    {"shift": 5.0, "scale": 5.0, "gamma": 0.0, "beta": 2.0, "epsilon": 10.0, "token": 3},
]


def normalized(norm: str, x, gamma: float, beta: float, epsilon: float):
    """The norm carried out by the package, or by PyTorch's batch norm in training."""
    weights = torch.full((4,), gamma, dtype=x.dtype), torch.full((4,), beta, dtype=x.dtype)
    if norm == "layer":
        return layer_norm(x, *weights, epsilon)
    if norm == "rms":
        return rms_norm(x, weights[0], epsilon)
    return torch.nn.functional.batch_norm(x, None, None, *weights, training=True, eps=epsilon)


def measured(norm: str, x):
    """The mean and the deviation that a norm uses, one of each for every number of x."""
    if norm == "rms":
        return torch.zeros_like(x), (x * x).mean(-1, keepdim=True).sqrt().expand_as(x)
    axis = -1 if norm == "layer" else 0
    deviation, mean = torch.std_mean(x, dim=axis, correction=0, keepdim=True)
    return mean.expand_as(x), deviation.expand_as(x)


def steps(norm: str, x, gamma: float, beta: float, epsilon: float) -> list:
    """The block before the norm and after each step; the last is the package's own."""
    weights = ((1.0, 0.0), (gamma, 0.0), (gamma, beta))
    return [x, x - measured(norm, x)[0], *(normalized(norm, x, *two, epsilon) for two in weights)]


def expected(norm: str, dimension: int, step: int, shift, scale, token, **options) -> dict:
    block = torch.tensor(BLOCK, dtype=torch.float64)
    changed = block.clone()
    changed[token] = changed[token] * scale + shift
    levels, unchanged = steps(norm, changed, **options), steps(norm, block, **options)
    moved = [(a - b).abs().amax(-1).tolist() for a, b in zip(levels, unchanged, strict=True)]
    one = [(i, dimension) for i in range(6)] if norm == "batch" else product([token], range(4))
    group, told = list(one), []
    for heading, level in (("before", 0), (f"after: {NAMES[step]}", step)):
        cells = product(enumerate(TOKENS), range(4))
        told += [f"change “{name}”" for name in TOKENS]
        told += [f"“{name}”, dimension {j}, {heading}: {levels[level][i, j]:.2f}"
                 for (i, name), j in cells]  # fmt: skip
        far = zip(TOKENS, moved[level], strict=True)
        told += lines(f"“{{}}”, {heading}: moved by {{:.2f}}", far)
    marks = [[part[group[0]] for part in measured(norm, level)] for level in levels]
    shown = "{0}: root mean square {2:.2f}" if norm == "rms" else BOTH
    told += [shown.format(NAMES[i], *marks[i]) for i in range(step + 1)]
    told += [f"“{TOKENS[i]}”, dimension {j}, {NAMES[level]}: {levels[level][i, j]:.2f}"
             for level, (i, j) in product(range(step + 1), group)]  # fmt: skip
    return {"told": told, "moved": moved}


def test_every_number_is_that_of_the_norm(show):
    page = show(NormExplorer())
    cases = list(product(NORMS, range(4), (None, 4)))
    cases = [(norm, i, i if step is None else step) for norm, i, step in cases]
    states = [STATES[i] | {"norm": norm, "step": step, "dimension": i} for norm, i, step in cases]
    for (norm, number, step), shown in zip(cases, page.states(states), strict=True):
        wanted = expected(norm, number, step, **STATES[number])
        # a dot that moves was made earlier than the traces that it leaves
        assert_agree(sorted(shown["told"]), sorted(wanted["told"]))


def test_a_norm_says_whom_a_change_reaches_or_what_is_measured_and_a_click_chooses(show):
    page = show(NormExplorer())
    assert page.title == "Layer norm: changing “child” moves no output, not even its own"
    page.set(epsilon=10.0)
    assert page.title == "Layer norm: changing “child” moves no output but its own"
    page.set(norm="rms", epsilon=1e-5)
    assert page.title == "RMS norm: changing “child” moves no output but its own"
    page.set(norm="batch")
    wanted = expected("batch", 0, 4, 2.0, 2.0, 1, gamma=1.0, beta=0.0, epsilon=1e-5)
    _, *others = sorted(wanted["moved"][4], reverse=True)  # its own output moves farthest
    title = f"Batch norm: changing “child” moves other outputs by up to {max(others):.2f}"
    assert same_numbers(page.title, title)
    page.named("change “.”").first.click()
    assert page.get("token") == 5
    page.set(norm="layer", token=1)
    page.click("“the”, dimension 3, before: 0.40")
    assert page.get("token", "dimension") == [3, 3]


def test_a_lesson_chooses_which_controls_it_offers(show):
    assert show(NormExplorer()).named("Batch").count() == 1
    few = show(NormExplorer(offered=["beta", "epsilon"]))
    assert few.named("Batch").count() == 0
    labels = [re.split(r"\W", text)[0] for text in few.page.locator("label").all_inner_texts()]
    assert {"beta", "Step"} <= {*labels} and not {"shift", "scale", "gamma"} & {*labels}
