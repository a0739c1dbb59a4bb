"""All that happens in a forward pass of the package's models, to compare with what a page shows."""

import math
import re
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.model.hooks import record

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NAMES = re.compile(r"\bW_\w+|[a-z]\d+\b")  # of matrices and of numbers in a row
MATRICES = {"queries": "W_Q", "keys": "W_K", "values": "W_V", "logits": "projection"}
EMBEDDED, BACK = ("tokens", "output"), ("W_O", "W_2", "W_down", "logits")


class Pass(NamedTuple):
    """Hook points and modules' results by name, and what went into each module."""

    model: nn.Module
    ids: dict[str, list[int]]
    values: dict[str, Tensor]
    given: dict[str, Tensor]
    results: dict[str, Tensor]


class Making(NamedTuple):
    """What one number was made of: what was added up, and the numbers told of it."""

    terms: list[float]
    numbers: list[float]


@torch.no_grad()
def forward_pass(model: nn.Module, ids: dict[str, list[int]]) -> Pass:
    given, results, handles = {}, {}, []
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) or "norm" in name.rpartition(".")[2]:

            def keep(module, inputs, result, name=name):
                given[name], results[name] = inputs[0].squeeze(0), result.squeeze(0)

            handles.append(module.register_forward_hook(keep))
    with record(model) as run:
        model(*(torch.tensor([one]) for one in ids.values()))
    for handle in handles:
        handle.remove()
    values = {name: value.squeeze(0) for name, value in run.items()}
    for name, result in results.items():
        pre = config_of(model, name).norm_position == "pre"
        if name.endswith(BACK) or (pre and "norm" in name):
            values[name] = result
    if "logits" in values:
        values["probabilities"] = values["logits"][-1:].softmax(-1)
    return Pass(model, ids, values, given, results)


def config_of(model: nn.Module, name: str):
    source = name.startswith(("source", "encoder"))
    return getattr(model, "source_config", model.config) if source else model.config


def making(run: Pass, name: str, head: int, row: int, column: int) -> Making:
    """Compute one number of a quantity from what it is made of."""
    owner, _, last = name.rpartition(".")
    config = config_of(run.model, name)
    if owner.endswith("embedding"):
        return embedded(run, owner, last, row, column, config)
    if last in ("queries", "keys", "values"):
        return into_heads(run, name, head, row, column, config)
    if last in ("scores", "weights", "heads"):
        return attended(run, owner, last, head, row, column)
    if last == "probabilities":
        powers = (run.values["logits"][-1] - run.values["logits"][-1].max()).exp()
        return Making([powers[column].item()], [powers[column].item(), powers.sum().item()])
    if last in BACK:
        return mapped(run, MATRICES.get(name, name), row, column)
    if last == "hidden":
        return activated(run, owner, row, column)
    return added(run, name, row, column, config) if name in run.values and (
        last == "output" or last.startswith("after")
    ) else normalized(run, name, row, column)  # fmt: skip


def embedded(run: Pass, owner: str, last: str, row: int, column: int, config) -> Making:
    token = run.values[f"{owner}.tokens"][row, column].item()
    if last == "output":
        place = run.values[f"{owner}.output"][row, column].item() - token
        unmoved = torch.allclose(run.values[f"{owner}.output"], run.values[f"{owner}.tokens"])
        return Making([token], []) if unmoved else Making([token, place], [token, place])
    id_ = run.ids["source" if owner == "source_embedding" else list(run.ids)[-1]][row]
    if not config.scale_embedding:
        return Making([token], [id_])
    return Making([token], [id_, token / math.sqrt(config.d_model), config.d_model])


def mapped(run: Pass, matrix: str, row: int, out: int) -> Making:
    module, x = run.model.get_submodule(matrix), run.given[matrix][row]
    bias = [] if module.bias is None else [module.bias[out].item()]
    return Making((x * module.weight[out]).tolist(), [len(x), *bias])


def into_heads(run: Pass, name: str, head: int, row: int, column: int, config) -> Making:
    owner, _, last = name.rpartition(".")
    matrix, width = f"{owner}.{MATRICES[last]}", run.values[name].shape[-1]
    if config.positions != "rotary" or last == "values" or "cross" in name:
        return mapped(run, matrix, row, head * width + column)
    x, half = run.results[matrix][row][head * width :][:width].tolist(), width // 2
    angle = row * config.rotary_base ** (-(column % half) / half)
    late = column >= half
    other = x[column - half] if late else -x[column + half]
    return Making([x[column] * math.cos(angle), other * math.sin(angle)], [row, angle])


def attended(run: Pass, owner: str, last: str, head: int, row: int, column: int) -> Making:
    at = {name: run.values[f"{owner}.{name}"] for name in ("queries", "keys", "values", "scores")}
    weights = run.values[f"{owner}.weights"][head, row]
    shared = head // (len(at["queries"]) // len(at["keys"]))
    if last == "scores":
        products = at["queries"][head, row] * at["keys"][shared, column]
        n = len(products)
        return Making(products.tolist(), [n, products.sum().item(), n])
    if last == "heads":
        products = weights * at["values"][shared, :, column]
        return Making(products.tolist(), [len(products)])
    open_keys = weights > 0
    scores = at["scores"][head, row].masked_fill(~open_keys, -torch.inf)
    powers = (scores - scores.max()).exp() if open_keys.any() else torch.zeros_like(scores)
    told = [powers[column].item(), powers.sum().item()] if open_keys[column] else []
    return Making(powers[open_keys].tolist(), told)


def activated(run: Pass, owner: str, row: int, column: int) -> Making:
    gated = f"{owner}.W_gate" in run.given
    made = mapped(run, f"{owner}.{'W_gate' if gated else 'W_1'}", row, column)
    total = sum(made.terms) + sum(made.numbers[1:])
    up = [run.results[f"{owner}.W_up"][row, column].item()] if gated else []
    return Making(made.terms, [total, *made.numbers, *up])


def normalized(run: Pass, name: str, row: int, column: int) -> Making:
    module, x = run.model.get_submodule(name), run.given[name][row]
    epsilon, gain = config_of(run.model, name).norm_epsilon, module.weight[column].item()
    if getattr(module, "bias", None) is None:
        scale = (x.square().mean() + epsilon).sqrt().item()
        return Making(x.tolist(), [x[column].item(), scale, gain])
    scale = (x.var(correction=0) + epsilon).sqrt().item()
    numbers = [x[column].item(), x.mean().item(), scale, gain, module.bias[column].item()]
    return Making(x.tolist(), numbers)


def added(run: Pass, name: str, row: int, column: int, config) -> Making:
    block, _, last = name.rpartition(".")
    part = {"after_cross_attention": "cross_attention", "output": "feed_forward"}
    branch = f"{block}.{part.get(last, 'self_attention')}"
    outs = [f"{branch}.{matrix}" for matrix in BACK if f"{branch}.{matrix}" in run.results]
    more = run.results[outs[0]][row, column].item()
    number = {"after_cross_attention": 2, "output": 3 if f"{block}.norm_3" in run.given else 2}
    norm = f"{block}.norm_{number.get(last, 1)}"
    if config.norm_position == "pre":
        x = run.given[norm][row, column].item()
        return Making([x, more], [x, more])
    x = run.given[norm][row, column].item() - more
    return Making([x, more], [x, more, *normalized(run, norm, row, column).numbers])


def told_numbers(text: str) -> list[float]:
    """The numbers in a text, without those that belong to names."""
    return [float(number) for number in NUMBER.findall(NAMES.sub("", text))]


def three_digits(told: float, expected: float) -> bool:
    """Whether a number that is told with three digits is the expected one."""
    return math.isclose(told, expected, rel_tol=6e-3, abs_tol=1e-4)
