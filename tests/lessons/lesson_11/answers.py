"""What learners might write for the exercises of lesson 11."""

import torch

from tests.exercises.answers import right, wrong


@right("smallest_circuit")
def _(edges, accuracy, keep=0.95):
    def go(kept, limit):
        rest = max(([e for e in kept if e != gone] for gone in kept), key=accuracy)
        return go(rest, limit) if accuracy(rest) >= limit else kept

    return go(list(edges), accuracy(edges) * keep)


@wrong("smallest_circuit", "unusual", "returns the edges in the order of what they are worth")
def _(edges, accuracy, keep=0.95):
    low, kept = keep * accuracy(edges), list(edges)
    while kept:
        rest = max(([e for e in kept if e != gone] for gone in kept), key=accuracy)
        if accuracy(rest) < low:
            break
        kept = rest
    return sorted(kept, key=lambda edge: accuracy([e for e in kept if e != edge]))


@right("continue_by_hand")
def _(ids):
    n = ids.size(1)
    same = (ids[..., None] == ids[:, None]) & (torch.arange(n) < torch.arange(n)[:, None])
    place = (same * torch.arange(1, n + 1)).max(dim=-1)[0]
    none = torch.full((len(ids), 1), -1)
    return torch.cat([none, ids[:, 1:], none], dim=1).gather(1, place)


@wrong("continue_by_hand", "unusual", "places where any sentence repeats")
def _(ids):
    n = ids.size(1)
    same = (ids[:, :, None] == ids[:, None, :]).any(0).tril(-1)
    last = torch.where(same, torch.arange(n), -1).amax(-1).expand(ids.shape)
    return torch.where(last >= 0, ids.gather(1, (last + 1).clamp(max=n - 1)), -1)


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
