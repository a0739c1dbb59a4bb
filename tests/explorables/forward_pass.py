"""All that happens in a forward pass of the package's models, to compare with what a page shows."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.model.hooks import record

BACK = ("W_O", "W_2", "W_down")


class Pass(NamedTuple):
    """Hook points and modules' results by name, and what went into each module."""

    model: nn.Module
    ids: dict[str, list[int]]
    values: dict[str, Tensor]
    given: dict[str, Tensor]
    results: dict[str, Tensor]


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
