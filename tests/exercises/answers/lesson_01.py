"""What learners might write for the exercises of lesson 01."""

import math
from collections import defaultdict
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

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


@wrong("embed", "unusual", "makes a new random nn.Embedding instead of using the table")
def _(ids, table):
    vocab_size, d_model = table.shape
    embedding = nn.Embedding(vocab_size, d_model)
    return embedding(ids) * math.sqrt(d_model)


@wrong("embed", "pair", "a new random table", "root of the number of tokens")
def _(ids, table):
    embedding = nn.Embedding(*table.shape)
    return embedding(ids) * math.sqrt(ids.size(1))


@right("embed")
def _(ids, table):
    one_hot = F.one_hot(ids.long(), num_classes=table.shape[0]).to(table.dtype)  # (b, n, vocab)
    return torch.einsum("bnv,vd->bnd", one_hot, table) * table.shape[1] ** 0.5


@right("embed")
def _(ids, table):
    d_model = table.size(-1)
    flat = torch.index_select(table, 0, ids.reshape(-1))
    return flat.mul(d_model**0.5).view(*ids.shape, d_model)


@right("embed")  # from_pretrained freezes its table, but no gradient is asked for here
def _(ids, table):
    lookup = nn.Embedding.from_pretrained(table)
    return lookup(ids) * lookup.embedding_dim**0.5
