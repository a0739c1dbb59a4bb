"""What learners might write for the exercises of lesson 01."""

from collections import Counter
from itertools import pairwise

import torch

from tests.exercises.answers import right, wrong


@right("apply_byte_pairs")  # the earliest merge that fits, again and again, as GPT-2's code
def _(word, merges):
    rank = {pair: i for i, pair in enumerate(merges)}
    pieces = tuple(word)
    while fitting := [pair for pair in pairwise(pieces) if pair in rank]:
        best, joined = min(fitting, key=rank.get), []
        for piece in pieces:
            if joined and (joined[-1], piece) == best:
                joined[-1] += piece
            else:
                joined.append(piece)
        pieces = tuple(joined)
    return pieces


@wrong("apply_byte_pairs", "usual", "one list for all merges, never emptied")
def _(word, merges):
    pieces, joined = list(word), []
    for left, right_ in merges:
        for piece in pieces:
            if joined and joined[-1] == left and piece == right_:
                joined[-1] += piece
            else:
                joined.append(piece)
    return joined


def cut(word, merges):
    pieces = list(word)
    for pair in merges:
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == pair:
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return pieces


def neighbors(counts, merges):
    frequency = Counter()
    for word, count in counts.items():
        for pair in pairwise(cut(word, merges)):
            frequency[pair] += count
    return frequency


def trained(counts, n_merges, table=neighbors, best=lambda table: max(table, key=table.get)):
    merges = []
    for _ in range(n_merges):
        found = table(counts, merges)
        if not found:
            break
        merges.append(best(found))
    return merges


@wrong("train_byte_pairs", "unusual", "a set of each word's pairs, in the order of their letters")
def _(counts, n_merges):
    def table(counts, merges):
        frequency = Counter()
        for word, count in counts.items():
            for pair in sorted(set(pairwise(cut(word, merges)))):
                frequency[pair] += count
        return frequency

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "unusual", "ends at pairs rarer than 3")
def _(counts, n_merges):
    def table(counts, merges):
        return {pair: n for pair, n in neighbors(counts, merges).items() if n > 2}

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "unusual", "a set of merges")
def _(counts, n_merges):
    return set(trained(counts, n_merges))


@right("nearest_neighbors")  # nearest on the unit sphere, by distance
def _(vectors):
    units = vectors / vectors.norm(dim=1, keepdim=True)
    apart = (units[:, None] - units[None]).norm(dim=-1)
    return (apart + 9 * torch.eye(len(vectors))).argmin(dim=0)


@wrong("nearest_neighbors", "pair", "minus 1 on the diagonal", "dot products")
def _(vectors):
    return (vectors @ vectors.T).fill_diagonal_(-1).argmax(dim=1)
