"""What learners might write for the exercises of lesson 01."""

import math
from collections import defaultdict
from itertools import zip_longest

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from tests.exercises.answers import right, wrong
from transformer_lesson.text.tokenizers import words

# encode(text, vocabulary, unk_id)


@wrong("encode", "usual", "cuts at white space, so punctuation stays on the word")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(word, unk_id) for word in text.split()]


@wrong("encode", "pair", "cuts at white space", "leaves unknown words out")
def _(text, vocabulary, unk_id):
    known = filter(lambda w: w in vocabulary, text.split(" "))
    return [vocabulary[w] for w in known]


@right("encode")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(word, unk_id) for word in words(text)]


@right("encode")
def _(text, vocabulary, unk_id):
    ids = []
    for word in words(text):
        try:
            ids.append(vocabulary[word])
        except KeyError:
            ids.append(unk_id)
    return ids


@right("encode")
def _(text, vocabulary, unk_id):
    lookup = defaultdict(lambda: unk_id, vocabulary)
    return [lookup[w] for w in words(text)]


@right("encode")
def _(text, vocabulary, unk_id):
    tokens = words(text)
    ids = [unk_id] * len(tokens)
    for position, token in enumerate(tokens):
        if token in vocabulary.keys():
            ids[position] = vocabulary[token]
    return ids


# pad_batch(sequences, pad_id)


@wrong("pad_batch", "usual", "fills with 0 instead of pad_id")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    batch = torch.zeros(len(sequences), n, dtype=torch.long)
    for i, s in enumerate(sequences):
        batch[i, : len(s)] = torch.tensor(s, dtype=torch.long)
    return batch


@wrong("pad_batch", "unusual", "max without key=len finds the largest list, not the longest")
def _(sequences, pad_id):
    n = len(max(sequences))
    batch = torch.full((len(sequences), n), pad_id)
    for i, s in enumerate(sequences):
        batch[i, : len(s)] = torch.tensor(s, dtype=torch.int64)
    return batch


@wrong("pad_batch", "pair", "pads on the left", "with 0")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    rows = [F.pad(torch.tensor(s, dtype=torch.long), (n - len(s), 0)) for s in sequences]
    return torch.stack(rows)


@right("pad_batch")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    return torch.tensor([list(s) + [pad_id] * (n - len(s)) for s in sequences], dtype=torch.int64)


@right("pad_batch")
def _(sequences, pad_id):
    tensors = [torch.tensor(s, dtype=torch.int64) for s in sequences]
    return pad_sequence(tensors, batch_first=True, padding_value=pad_id)


@right("pad_batch")
def _(sequences, pad_id):
    columns = list(zip_longest(*sequences, fillvalue=pad_id))
    return torch.tensor(columns, dtype=torch.int64).reshape(-1, len(sequences)).T


@right("pad_batch")
def _(sequences, pad_id):
    lengths = torch.tensor([len(s) for s in sequences])
    batch = torch.full((len(sequences), int(lengths.max())), pad_id, dtype=torch.long)
    real = torch.arange(batch.size(1)) < lengths[:, None]
    batch[real] = torch.tensor([id_ for s in sequences for id_ in s], dtype=torch.long)
    return batch


@right("pad_batch")
def _(sequences, pad_id):
    n = 0
    for s in sequences:
        if len(s) > n:
            n = len(s)
    batch = torch.empty((len(sequences), n), dtype=torch.int64)
    for i in range(len(sequences)):
        for j in range(n):
            batch[i, j] = sequences[i][j] if j < len(sequences[i]) else pad_id
    return batch


# embed(ids, table)


@wrong("embed", "usual", "no factor")
def _(ids, table):
    return F.embedding(ids, table)


@wrong("embed", "unusual", "makes a new random nn.Embedding instead of using the table")
def _(ids, table):
    vocab_size, d_model = table.shape
    embedding = nn.Embedding(vocab_size, d_model)
    return embedding(ids) * math.sqrt(d_model)


@wrong("embed", "pair", "ids counted from 1", "root of vocab_size")
def _(ids, table):
    vocab_size, _d_model = table.shape
    return table[ids - 1] * vocab_size**0.5


@wrong("embed", "pair", "a new random table", "root of the number of tokens")
def _(ids, table):
    embedding = nn.Embedding(*table.shape)
    return embedding(ids) * math.sqrt(ids.size(1))


@right("embed")
def _(ids, table):
    return table[ids] * math.sqrt(table.size(1))


@right("embed")
def _(ids, table):
    one_hot = F.one_hot(ids.long(), num_classes=table.shape[0]).to(table.dtype)  # (b, n, vocab)
    return torch.einsum("bnv,vd->bnd", one_hot, table) * table.shape[1] ** 0.5


@right("embed")
def _(ids, table):
    d_model = table.size(-1)
    flat = torch.index_select(table, 0, ids.reshape(-1))
    return flat.mul(d_model**0.5).view(*ids.shape, d_model)


@right("embed")
def _(ids, table):
    sentences = []
    for sentence in ids:
        sentences.append(torch.stack([table[i] for i in sentence]))
    return torch.stack(sentences) * math.sqrt(table.shape[-1])


@right("embed")
def _(ids, table):
    factor = torch.tensor(float(table.size(1)), dtype=table.dtype).sqrt()
    return F.embedding(ids, factor * table)


@right("embed")  # from_pretrained freezes its table, but no gradient is asked for here
def _(ids, table):
    lookup = nn.Embedding.from_pretrained(table)
    return lookup(ids) * lookup.embedding_dim**0.5
