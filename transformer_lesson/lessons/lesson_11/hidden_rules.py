"""The rules behind the unknown models. Read no further if you want to find one yourself.

Three rules, each with a model trained on it. A model's number decides which rule it has and what
its tokens are called, so each number has a rule of its own, exactly as well learned.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Int64
from safetensors.torch import load_file
from torch import Tensor

from transformer_lesson.caching import copied
from transformer_lesson.lessons.lesson_11 import induction

WEIGHTS = Path(__file__).with_name("unknown.safetensors")
N_TOKENS, TRAINED_LENGTH, MAX_LENGTH = 12, 24, 32  # ids; tokens in training, and at most
MODELS = 30
CONFIG = replace(induction.CONFIG, vocab_size=N_TOKENS, d_model=32, max_len=MAX_LENGTH)
DISTANCES = 4

Ids = Int64[Tensor, "batch n"]


def _copied(ids: Ids, place: Ids) -> Ids:
    """Return the token at each place, and a query's own where the place is below 0."""
    return torch.where(place >= 0, ids.gather(1, place.clamp(min=0)), ids)


def follow(ids: Ids) -> Ids:
    """Return what followed the last earlier copy, else the token itself; at 0, the first token."""
    same = (ids[:, :, None] == ids[:, None, :]).tril(-1)  # (batch, query, earlier place)
    after = torch.where(same, torch.arange(1, ids.size(1) + 1), -1).amax(dim=-1)
    return torch.where(ids == 0, ids[:, :1], _copied(ids, after))


def distance(ids: Ids) -> Ids:
    """Return the token 1 to 4 places back, as the first token says, else the token itself."""
    back = ids[:, :1] % DISTANCES + 1
    return _copied(ids, torch.arange(ids.size(1)) - back)


def separator(ids: Ids) -> Ids:
    """Return the token right after the last 0 that stood before, else the token itself."""
    after = torch.where(ids == 0, torch.arange(1, ids.size(1) + 1), -1).cummax(dim=1).values
    return _copied(ids, torch.cat([torch.full_like(ids[:, :1], -1), after[:, :-1]], dim=1))


RULES: dict[str, Callable[[Ids], Ids]] = {
    rule.__name__: rule for rule in (follow, distance, separator)
}


class Variant(NamedTuple):
    """A rule, and for each token of the numbered model the token of the trained one."""

    rule: str
    to_trained: tuple[int, ...]


@cache
def renamed(number: int) -> Variant:
    """Return which rule a model has and how its tokens are renamed; no two numbers share both.

    Args:
        number: from 1 to 30; each group of three has all three rules, in its own order.
    """
    group, place = divmod(number - 1, len(RULES))
    rule = random.Random(f"rules {group}").sample([*RULES], len(RULES))[place]
    chance = random.Random(f"model {number}")
    if rule == "distance":  # a token keeps its class; classes change places
        classes = [*permutations(range(DISTANCES))]
        random.Random("distances").shuffle(classes)
        return Variant(rule, tuple(t - t % DISTANCES + classes[group][t % 4] for t in range(12)))
    special = random.Random(rule).sample(range(N_TOKENS), N_TOKENS)[group]
    others = iter(chance.sample(range(1, N_TOKENS), N_TOKENS - 1))
    return Variant(rule, tuple(0 if t == special else next(others) for t in range(N_TOKENS)))


def hidden_rule(number: int, ids: Ids) -> Ids:
    """Return what the model of this number was trained to guess."""
    rule, tokens = renamed(number)
    to_trained = torch.tensor(tokens)
    return to_trained.argsort()[RULES[rule](to_trained[ids])]


@copied
def trained_model(number: int) -> induction.AttentionOnlyDecoder:
    """Return the model of this number: the trained one with its tokens renamed."""
    rule, to_trained = renamed(number)
    stored = load_file(WEIGHTS)
    weights = {
        n.removeprefix(f"{rule}."): w.float() for n, w in stored.items() if n.startswith(rule)
    }
    for table in ("embedding.weight", "projection.weight"):
        weights[table] = weights[table][list(to_trained)]
    model = induction.AttentionOnlyDecoder(CONFIG)
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False)
