"""Lesson 17: how often a rule of thumb is wrong."""

from itertools import product


def false_alarms(differences, rule):
    """Return how often a rule would see a difference if there were none."""
    seen = []
    for signs in product((1, -1), repeat=len(differences)):
        seen.append(rule([one * sign for one, sign in zip(differences, signs, strict=True)]))
    return sum(seen) / len(seen)
