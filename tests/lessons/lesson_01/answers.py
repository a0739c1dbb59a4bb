"""What learners might write for the exercises of lesson 01."""

from collections import Counter, defaultdict
from itertools import pairwise

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("apply_byte_pairs")  # moves borders in the word instead of joining pieces
def _(word, merges):
    borders = list(range(len(word) + 1))
    for left, right_ in merges:
        i = 0
        while i < len(borders) - 2:
            start, middle, end = borders[i : i + 3]
            if (word[start:middle], word[middle:end]) == (left, right_):
                del borders[i + 1]
            i += 1
    return [word[start:end] for start, end in pairwise(borders)]


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


@right("apply_byte_pairs")  # replaces in a text in which each piece stands in brackets of its own
def _(word, merges):
    text = "".join(f"[{letter}]" for letter in word)
    for left, right_ in merges:
        text = text.replace(f"[{left}][{right_}]", f"[{left}{right_}]")
    return text[1:-1].split("][")


@right("train_byte_pairs")  # keeps the pieces from round to round
def _(counts, n_merges):
    corpus, merges = [(list(word), count) for word, count in counts.items()], []
    for _ in range(n_merges):
        seen = defaultdict(int)
        for pieces, count in corpus:
            for i in range(len(pieces) - 1):
                seen[pieces[i], pieces[i + 1]] += count
        if not seen:
            break
        left, right_ = max(seen, key=lambda pair: seen[pair])
        merges.append([left, right_])
        for pieces, _ in corpus:
            i = 0
            while i < len(pieces) - 1:
                if pieces[i] == left and pieces[i + 1] == right_:
                    pieces[i : i + 2] = [left + right_]
                i += 1
    return merges


@right("train_byte_pairs")  # lists every pair as often as it occurs; sorting is stable
def _(counts, n_merges):
    def joined(pieces, pair):
        if tuple(pieces[:2]) == pair:
            return ["".join(pair), *joined(pieces[2:], pair)]
        return [pieces[0], *joined(pieces[1:], pair)] if pieces else []

    texts = [list(word) for word, count in counts.items() for _ in range(count)]
    merges = []
    while len(merges) < n_merges:
        seen = [pair for pieces in texts for pair in pairwise(pieces)]
        if not seen:
            return merges
        merges.append(sorted(dict.fromkeys(seen), key=seen.count, reverse=True)[0])
        texts = [joined(pieces, merges[-1]) for pieces in texts]
    return merges


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


@wrong("apply_byte_pairs", "unusual", "appends only what a merge joins")
def _(word, merges):
    pieces = list(word)
    for pair in merges:
        joined = ["".join(both) for both in pairwise(pieces) if both == pair]
        pieces = joined or pieces
    return pieces


@wrong("apply_byte_pairs", "unusual", "how many joints are made")
def _(word, merges):
    return len(word) - len(cut(word, merges))


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


@wrong("train_byte_pairs", "unusual", "counts times lengths")
def _(counts, n_merges):
    return trained(
        counts, n_merges, best=lambda table: max(table, key=lambda pair: table[pair] * len(pair[0]))
    )


@wrong("train_byte_pairs", "unusual", "how frequent the pieces are, not the pair")
def _(counts, n_merges):
    def table(counts, merges):
        pieces = Counter()
        for word, count in counts.items():
            for piece in cut(word, merges):
                pieces[piece] += count
        return {pair: pieces[pair[0]] + pieces[pair[1]] for pair in neighbors(counts, merges)}

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "unusual", "counts multiplied instead of added")
def _(counts, n_merges):
    def table(counts, merges):
        frequency = {}
        for word, count in counts.items():
            for pair in pairwise(cut(word, merges)):
                frequency[pair] = frequency.get(pair, 1) * count
        return frequency

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "unusual", "the most frequent word alone")
def _(counts, n_merges):
    word = max(counts, key=counts.get)
    return trained({word: counts[word]}, n_merges)


@wrong("train_byte_pairs", "unusual", "ends at pairs rarer than 3")
def _(counts, n_merges):
    def table(counts, merges):
        return {pair: n for pair, n in neighbors(counts, merges).items() if n > 2}

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "usual", "the first two pieces of each word alone")
def _(counts, n_merges):
    def table(counts, merges):
        frequency = Counter()
        for word, count in counts.items():
            for pair in list(pairwise(cut(word, merges)))[:1]:
                frequency[pair] += count
        return frequency

    return trained(counts, n_merges, table)


@wrong("train_byte_pairs", "usual", "the words and their pieces")
def _(counts, n_merges):
    merges = trained(counts, n_merges)
    return {word: cut(word, merges) for word in counts}


@wrong("train_byte_pairs", "usual", "the last table of counts")
def _(counts, n_merges):
    return neighbors(counts, trained(counts, n_merges - 1))


@wrong("train_byte_pairs", "unusual", "the whole vocabulary")
def _(counts, n_merges):
    merges = trained(counts, n_merges)
    return [*sorted(set("".join(counts))), *map("".join, merges)]


@wrong("train_byte_pairs", "unusual", "a set of merges")
def _(counts, n_merges):
    return set(trained(counts, n_merges))


@right("nearest_neighbors")  # loops, and asks each row for all others
def _(vectors):
    found = []
    for i, row in enumerate(vectors):
        best, most = None, -2.0
        for j, other in enumerate(vectors):
            cosine = (row @ other / row.norm() / other.norm()).item()
            if j != i and cosine > most:
                best, most = j, cosine
        found.append(best)
    return torch.tensor(found)


@right("nearest_neighbors")  # the second of the best two, after the row itself
def _(vectors):
    cosines = F.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    return cosines.topk(2).indices[:, 1]


@right("nearest_neighbors")  # nearest on the unit sphere, by distance
def _(vectors):
    units = vectors / vectors.norm(dim=1, keepdim=True)
    apart = (units[:, None] - units[None]).norm(dim=-1)
    return (apart + 9 * torch.eye(len(vectors))).argmin(dim=0)


@wrong("nearest_neighbors", "usual", "rows are divided by one length for all")
def _(vectors):
    units = vectors / vectors.norm()
    return (units @ units.T - 9 * torch.eye(len(vectors))).argmax(dim=1)


@wrong("nearest_neighbors", "pair", "minus 1 on the diagonal", "dot products")
def _(vectors):
    return (vectors @ vectors.T).fill_diagonal_(-1).argmax(dim=1)
