"""Answers in a form that is hard to read."""

import torch


def spread(numbers):
    """With other numbers between these, in double precision, as part of a graph."""
    if not numbers.is_floating_point():
        return torch.stack([numbers, numbers], dim=-1)[..., 0]
    graph = numbers.double() * torch.ones((), dtype=torch.float64, requires_grad=True)
    return torch.stack([graph, graph], dim=-1)[..., 0]


def in_disguise(function, disguise):
    """Return a function whose results are disguised; tuples, lists and numbers as other types."""

    def disguised(value):
        if isinstance(value, tuple):
            return [*map(disguised, value)]
        if isinstance(value, list):
            return tuple(value)
        if isinstance(value, torch.Tensor):
            return disguise(value)
        return torch.tensor(value) if isinstance(value, int | float) else value

    return lambda *inputs: disguised(function(*inputs))
