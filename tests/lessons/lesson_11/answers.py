"""What learners might write for the exercises of lesson 11."""

from itertools import combinations

import torch

from tests.exercises.answers import right, wrong


@right("smallest_circuit")  # returns a tuple, and asks for tuples
def _(edges, accuracy, keep=0.95):
    need = accuracy(edges) * keep
    left = tuple(edges)
    while len(left) > 1:
        rests = [left[:i] + left[i + 1 :] for i in range(len(left))]
        scores = torch.tensor([accuracy(rest) for rest in rests], dtype=torch.float64)
        if scores.max() < need:
            break
        left = rests[int(scores.argmax())]
    return left


@right("smallest_circuit")  # asks for each set of edges once
def _(edges, accuracy, keep=0.95):
    seen = {}

    def ask(some):
        key = frozenset(some)
        if key not in seen:
            seen[key] = accuracy([edge for edge in edges if edge in key])
        return seen[key]

    kept, target = set(edges), keep * ask(edges)
    while True:
        options = [(ask(kept - {edge}), edge) for edge in edges if edge in kept]
        top = max((score for score, _ in options), default=-1)
        if top < target:
            return [edge for edge in edges if edge in kept]
        kept.discard(next(edge for score, edge in options if score == top))


@right("smallest_circuit")
def _(edges, accuracy, keep=0.95):
    def go(kept, limit):
        rest = max(([e for e in kept if e != gone] for gone in kept), key=accuracy)
        return go(rest, limit) if accuracy(rest) >= limit else kept

    return go(list(edges), accuracy(edges) * keep)


@right("smallest_circuit")  # divides in the place of multiplying
def _(edges, accuracy, keep=0.95):
    kept, whole = dict.fromkeys(edges), accuracy(edges)
    while kept:
        scored = {one: accuracy([other for other in kept if other is not one]) for one in kept}
        worst = max(scored, key=scored.get)
        if scored[worst] / whole < keep:
            break
        del kept[worst]
    return list(kept)


@wrong("smallest_circuit", "unusual", "returns the edges in the order of what they are worth")
def _(edges, accuracy, keep=0.95):
    low, kept = keep * accuracy(edges), list(edges)
    while kept:
        rest = max(([e for e in kept if e != gone] for gone in kept), key=accuracy)
        if accuracy(rest) < low:
            break
        kept = rest
    return sorted(kept, key=lambda edge: accuracy([e for e in kept if e != edge]))


@wrong("smallest_circuit", "unusual", "cuts half of the edges at a time")
def _(edges, accuracy, keep=0.95):
    low, kept = keep * accuracy(edges), list(edges)
    while len(kept) > 1:
        halves = kept[: len(kept) // 2], kept[len(kept) // 2 :]
        enough = [half for half in halves if accuracy(half) >= low]
        if not enough:
            break
        kept = enough[0]
    return kept


@wrong("smallest_circuit", "unusual", "cuts two edges in each round and begins with later pairs")
def _(edges, accuracy, keep=0.95):
    low, kept = keep * accuracy(edges), list(edges)
    while len(kept) > 2:
        rests = ([e for e in kept if e not in pair] for pair in combinations(kept, 2))
        rest = max(rests, key=accuracy)
        if accuracy(rest) < low:
            break
        kept = rest
    return kept


@wrong("smallest_circuit", "unusual", "returns a number of edges and an accuracy")
def _(edges, accuracy, keep=0.95):
    low, kept = keep * accuracy(edges), list(edges)
    while kept:
        rest = max(([e for e in kept if e != gone] for gone in kept), key=accuracy)
        if accuracy(rest) < low:
            break
        kept = rest
    return len(kept), accuracy(kept)


@right("continue_by_hand")
def _(ids):
    n = ids.size(1)
    same = (ids[..., None] == ids[:, None]) & (torch.arange(n) < torch.arange(n)[:, None])
    place = (same * torch.arange(1, n + 1)).max(dim=-1)[0]
    none = torch.full((len(ids), 1), -1)
    return torch.cat([none, ids[:, 1:], none], dim=1).gather(1, place)


@right("continue_by_hand")
def _(ids):
    def guesses(row):
        pasts = [row[:i][::-1] for i in range(len(row))]
        pairs = zip(row, pasts, strict=True)
        return [row[i - p.index(t)] if t in p else -1 for i, (t, p) in enumerate(pairs)]

    return torch.tensor([guesses(row) for row in ids.tolist()])


@right("continue_by_hand")
def _(ids):
    out = torch.full_like(ids, -1)
    for b, row in enumerate(ids.tolist()):
        memory = {}
        for i, token in enumerate(row):
            if i:
                memory[row[i - 1]] = token
            out[b, i] = memory.get(token, -1)
    return out


@right("continue_by_hand")
def _(ids):
    out = torch.full_like(ids, -1)
    for b in range(ids.size(0)):
        for i in range(ids.size(1)):
            for j in range(i - 1, -1, -1):
                if ids[b, j] == ids[b, i]:
                    out[b, i] = ids[b, j + 1]
                    break
    return out


@wrong("continue_by_hand", "unusual", "the mean of all that followed")
def _(ids):
    same = (ids[:, :, None] == ids[:, None, :]).tril(-1).float()
    followed = ids.roll(-1, 1).float()[:, None]
    mean = (same * followed).sum(-1) / same.sum(-1).clamp(min=1)
    return torch.where(same.any(-1), mean.round().long(), -1)


@wrong("continue_by_hand", "unusual", "places where any sentence repeats")
def _(ids):
    n = ids.size(1)
    same = (ids[:, :, None] == ids[:, None, :]).any(0).tril(-1)
    last = torch.where(same, torch.arange(n), -1).amax(-1).expand(ids.shape)
    return torch.where(last >= 0, ids.gather(1, (last + 1).clamp(max=n - 1)), -1)


@wrong(
    "continue_by_hand", "unusual", "the token before the first place, and from the end for place 0"
)
def _(ids):
    out = torch.full_like(ids, -1)
    for b, row in enumerate(ids.tolist()):
        for i in range(1, len(row)):
            past = row[:i]
            if row[i] in past:
                out[b, i] = past[past.index(row[i]) - 1]
    return out


@wrong("continue_by_hand", "unusual", "numbers with a point")
def _(ids):
    out = torch.full(ids.shape, -1.0)
    for b, row in enumerate(ids.tolist()):
        for i in range(len(row)):
            for j in range(i):
                if row[j] == row[i]:
                    out[b, i] = row[j + 1]
    return out


@wrong("continue_by_hand", "unusual", "lists of those guesses alone that there are")
def _(ids):
    rows = ids.tolist()
    return [
        [row[i - row[:i][::-1].index(t)] for i, t in enumerate(row) if t in row[:i]] for row in rows
    ]


@wrong("continue_by_hand", "pair", "place 0 is never searched", "the first earlier place")
def _(ids):
    out = torch.full_like(ids, -1)
    for b, row in enumerate(ids.tolist()):
        for i in range(len(row)):
            for j in range(1, i):
                if row[j] == row[i]:
                    out[b, i] = row[j + 1]
                    break
    return out
