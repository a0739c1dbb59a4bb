"""What learners might write for the exercises of lesson 17."""

from itertools import permutations, product
from operator import mul

import torch

from tests.exercises.answers import right, wrong


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
