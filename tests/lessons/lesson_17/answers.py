"""What learners might write for the exercises of lesson 17."""

from itertools import permutations, product
from operator import mul

import torch

from tests.exercises.answers import right, wrong


@right("control")
def _(believed):
    """All that a side has may be named."""
    if believed == "fall":
        return {"schedule": "constant", "n_layers": 2}
    return {"activation": "swish"} if believed == "bell" else {"n_layers": 2, "d_ff": 455}


@wrong("control", "usual", "another smooth curve, and dropout")
def _(believed):
    right = {"fall": {"schedule": "constant"}, "deep": {"d_ff": 450}}
    return right.get(believed, {"activation": "swish", "dropout": 0.2})


@wrong("control", "unusual", "a field that no side has")
def _(believed):
    return {"rate": 0.01}


@right("false_alarms")
def _(differences, rule):
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * len(differences))
    return torch.tensor([rule(row) for row in signs * torch.tensor(differences)]).float().mean()


@wrong("false_alarms", "usual", "one sign at a time")
def _(differences, rule):
    lists = []
    for i in range(len(differences)):
        lists.append([*differences])
        lists[-1][i] *= -1
    return sum(map(rule, lists)) / len(lists)


@wrong("false_alarms", "unusual", "hands the rule a lazy `map`, which has no length")
def _(differences, rule):
    signs = [*product((1, -1), repeat=len(differences))]
    return sum(rule(map(mul, row, differences)) for row in signs) / len(signs)


@wrong("false_alarms", "usual", "changes the order of the differences instead of their signs")
def _(differences, rule):
    orders = [*permutations(differences)]
    return sum(map(rule, orders)) / len(orders)
