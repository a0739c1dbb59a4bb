"""What a norm does to six tokens, in the page: every number against PyTorch's norms."""

from itertools import product

import pytest
import torch

from tests.explorables.shown import same_numbers
from transformer_lesson.explorables import NormExplorer
from transformer_lesson.explorables.norm_explorer import BLOCK, TOKENS
from transformer_lesson.model.norm import layer_norm, rms_norm

pytestmark = pytest.mark.browser
NORMS = ["layer", "rms", "batch"]
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
    options = {"x": x, "epsilon": epsilon}
    return [
        x,
        x - measured(norm, x)[0],
        normalized(norm, gamma=1.0, beta=0.0, **options),
        normalized(norm, gamma=gamma, beta=0.0, **options),
        normalized(norm, gamma=gamma, beta=beta, **options),
    ]


def expected(norm: str, dimension: int, step: int, shift, scale, token, **options) -> dict:
    """Every sentence that the picture tells, and what its words say."""
    block = torch.tensor(BLOCK, dtype=torch.float64)
    changed = block.clone()
    changed[token] = changed[token] * scale + shift
    levels, unchanged = steps(norm, changed, **options), steps(norm, block, **options)
    moved = [(a - b).abs().amax(-1).tolist() for a, b in zip(levels, unchanged, strict=True)]
    group = (
        [(i, dimension) for i in range(6)] if norm == "batch" else [(token, j) for j in range(4)]
    )
    told = []
    for heading, level in (("before", 0), (f"after: {NAMES[step]}", step)):
        told += [f"change “{name}”" for name in TOKENS]
        told += [
            f"“{name}”, dimension {j}, {heading}: {levels[level][i, j]:.2f}"
            for i, name in enumerate(TOKENS)
            for j in range(4)
        ]
        told += [
            f"“{name}”, {heading}: moved by {far:.2f}"
            for name, far in zip(TOKENS, moved[level], strict=True)
        ]
    marks = [[part[group[0]] for part in measured(norm, level)] for level in levels]
    told += [
        f"{NAMES[i]}: root mean square {deviation:.2f}"
        if norm == "rms"
        else f"{NAMES[i]}: mean {mean:.2f}, deviation {deviation:.2f}"
        for i, (mean, deviation) in enumerate(marks[: step + 1])
    ]
    told += [
        f"“{TOKENS[i]}”, dimension {j}, {NAMES[level]}: {levels[level][i, j]:.2f}"
        for level in range(step + 1)
        for i, j in group
    ]
    return {"told": told, "marks": marks, "moved": moved, "levels": levels}


def assert_same(shown: list[str], wanted: list[str]) -> None:
    assert len(shown) == len(wanted)
    wrong = [pair for pair in zip(shown, wanted, strict=True) if not same_numbers(*pair)]
    assert wrong == []


def step_words(norm: str, marks: list, gamma: float, beta: float, epsilon: float) -> list[str]:
    mean, deviation = marks[0]
    name, root = "mean square" if norm == "rms" else "variance", (deviation**2 + epsilon) ** 0.5
    shown = {1e-8: "1e-8", 1e-5: "0.00001"}.get(epsilon, f"{epsilon:g}")
    return [
        NAMES[0],
        "no mean is subtracted" if norm == "rms" else f"− mean {mean:.2f}",
        f"÷ √({name} {deviation**2:.2f} + epsilon {shown}) = {root:.2f}",
        f"× gamma {gamma:g}",
        "no beta is added" if norm == "rms" else f"+ beta {beta:g}",
    ]


def test_every_number_is_that_of_the_norm(show):
    page = show(NormExplorer())
    cases = [(norm, i, step) for norm in NORMS for i in range(4) for step in (i, 4)]
    states = [STATES[i] | {"norm": norm, "step": step, "dimension": i} for norm, i, step in cases]
    for (norm, number, step), shown in zip(cases, page.states(states), strict=True):
        state = STATES[number]
        wanted = expected(norm, number, step, **state)
        # a dot that moves was made earlier than the traces that it leaves
        assert_same(sorted(shown["told"]), sorted(wanted["told"]))
        options = {name: state[name] for name in ("gamma", "beta", "epsilon")}
        words = shown["written"][-step - 1 :]
        assert_same(words, step_words(norm, wanted["marks"], **options)[: step + 1])
        assert_numbers_written(shown["written"], wanted, step)


def assert_numbers_written(written: list[str], wanted: dict, step: int) -> None:
    """The two blocks and the two columns "moved by" stand in the picture, too."""
    for level, at in ((0, written.index("before")), (step, written.index(f"after: {NAMES[step]}"))):
        numbers = [f"{x:.2f}" for x in wanted["levels"][level].flatten().tolist()]
        moved = [f"{x:.2f}" for x in wanted["moved"][level]]
        assert_same(written[at + 11 : at + 42], [*numbers, "moved by", *moved])


def test_the_sentence_is_made_of_the_pictures_numbers(show):
    page = show(NormExplorer())
    cases = list(product(NORMS, STATES))
    states = [state | {"norm": norm, "dimension": 2} for norm, state in cases]
    for (norm, state), shown in zip(cases, page.states(states), strict=True):
        wanted = expected(norm, 2, 4, **state)
        (mean, deviation), (after, spread) = wanted["marks"][0], wanted["marks"][4]
        name = TOKENS[state["token"]]
        whose = "dimension 2" if norm == "batch" else f"“{name}”"
        before = f"Mean and deviation of {whose}: {mean:.2f} and {deviation:.2f} before, "
        measure = before + f"{after:.2f} and {spread:.2f} after."
        if norm == "rms":
            measure = f"Root mean square of {whose}: {deviation:.2f} before, {spread:.2f} after."
        change = f"its old numbers × {state['scale']:g} + {state['shift']:g}, and its output moves"
        said = f" “{name}” is {change} by {wanted['moved'][4][state['token']]:.2f}. {measure} Gamma"
        told = shown["said"][len(shown["title"]) + 1 :].partition("Gamma")[0]
        assert same_numbers(told + "Gamma", said)


def test_a_norm_says_whom_a_change_reaches(show):
    page = show(NormExplorer())
    assert page.title == "Layer norm: changing “child” moves no output, not even its own"
    page.set(epsilon=10.0)
    assert page.title == "Layer norm: changing “child” moves no output but its own"
    page.set(norm="rms", epsilon=1e-5)
    assert page.title == "RMS norm: changing “child” moves no output but its own"
    page.set(norm="batch")
    wanted = expected("batch", 0, 4, 2.0, 2.0, 1, gamma=1.0, beta=0.0, epsilon=1e-5)
    _, *others = sorted(wanted["moved"][4], reverse=True)  # its own output moves farthest
    title = f"Batch norm: changing “child” moves other tokens’ outputs by up to {max(others):.2f}"
    assert same_numbers(page.title, title)
    page.set(step=2)
    assert page.title == "Batch norm, step 2 of 4: divided"


def test_nothing_changed_says_what_a_token_is_measured_against(show):
    page = show(NormExplorer(shift=0.0, scale=1.0))
    measured_against = {
        "layer": "Layer norm: each token is measured against its own mean and deviation",
        "rms": "RMS norm: each token is measured against its own root mean square",
        "batch": "Batch norm: each token is measured against all tokens’ mean and deviation",
    }
    for norm, claim in measured_against.items():
        page.set(norm=norm)
        assert page.title == claim


def test_a_click_chooses_and_a_number_lights_up_wherever_it_stands(show):
    page = show(NormExplorer())
    page.page.get_by_role("button", name="change “.”").first.click()
    assert page.get("token") == 5
    page.page.get_by_role("button", name="“the”, dimension 3, before: 0.40").click()
    assert (page.get("token"), page.get("dimension")) == (3, 3)
    page.set()  # waits for the picture
    lit = page.page.locator("svg [data-lit]")
    assert lit.count() == 2 + 4 + 5  # both blocks, its paths and its dots


def test_play_goes_through_the_steps(show):
    page = show(NormExplorer(step=3))
    page.page.get_by_role("button", name="Play").click()
    page.page.get_by_text("Layer norm: changing “child”").first.wait_for()
    assert page.get("step") == 4
    page.page.get_by_role("button", name="Play").click()
    page.page.get_by_text("Layer norm, step 1 of 4: minus the mean").first.wait_for()
