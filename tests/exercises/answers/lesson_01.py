"""What learners might write for the exercises of lesson 01."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.text.tokenizers import words


@right("encode")
def _(text, vocabulary, unk_id):
    tokens = words(text)
    ids = [unk_id] * len(tokens)
    for position, token in enumerate(tokens):
        if token in vocabulary.keys():
            ids[position] = vocabulary[token]
    return ids


@wrong("pad_batch", "unusual", "max without key=len finds the largest list, not the longest")
def _(sequences, pad_id):
    n = len(max(sequences))
    batch = torch.full((len(sequences), n), pad_id)
    for i, s in enumerate(sequences):
        batch[i, : len(s)] = torch.tensor(s, dtype=torch.int64)
    return batch


@right("pad_batch")
def _(sequences, pad_id):
    lengths = torch.tensor([len(s) for s in sequences])
    batch = torch.full((len(sequences), int(lengths.max())), pad_id, dtype=torch.long)
    real = torch.arange(batch.size(1)) < lengths[:, None]
    batch[real] = torch.tensor([id_ for s in sequences for id_ in s], dtype=torch.long)
    return batch


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
