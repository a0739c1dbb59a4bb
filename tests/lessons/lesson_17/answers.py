"""What learners might write for the exercises of lesson 17."""

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
