"""What learners might write for the exercises of lesson 01."""

import math
import re
from collections import defaultdict
from itertools import zip_longest

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from tests.exercises.answers import right, wrong
from transformer_lesson.model import positions
from transformer_lesson.text.tokenizers import words

# encode(text, vocabulary, unk_id)


@wrong("encode", "usual", "cuts at white space, so punctuation stays on the word")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(word, unk_id) for word in text.split()]


@wrong("encode", "usual", "a word that the vocabulary lacks becomes None")
def _(text, vocabulary, unk_id):
    ids = []
    for word in words(text):
        ids.append(vocabulary.get(word))
    return ids


@wrong("encode", "usual", "leaves unknown words out")
def _(text, vocabulary, unk_id):
    return [vocabulary[w] for w in words(text) if w in vocabulary]


@wrong("encode", "usual", "turns everything into small letters first")
def _(text, vocabulary, unk_id):
    tokens = words(text.lower())
    return [vocabulary.get(token, unk_id) for token in tokens]


@wrong("encode", "usual", "the unknown id is always 3, whatever unk_id is")
def _(text, vocabulary, unk_id):
    UNK = 3
    result = []
    for word in words(text):
        if word in vocabulary:
            result.append(vocabulary[word])
        else:
            result.append(UNK)
    return result


@wrong("encode", "usual", "an unknown word is a KeyError")
def _(text, vocabulary, unk_id):
    return list(map(vocabulary.__getitem__, words(text)))


@wrong("encode", "unusual", "`or` takes the id 0 of a known word for a missing one")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(word) or unk_id for word in words(text)]


@wrong("encode", "unusual", "setdefault writes the unknown words into the caller's vocabulary")
def _(text, vocabulary, unk_id):
    return [vocabulary.setdefault(word, unk_id) for word in words(text)]


@wrong("encode", "unusual", "a word that occurs twice gets one id only")
def _(text, vocabulary, unk_id):
    unique = dict.fromkeys(words(text))
    return [vocabulary.get(word, unk_id) for word in unique]


@wrong("encode", "unusual", "adds <bos> and <eos> as a Hugging Face tokenizer does")
def _(text, vocabulary, unk_id):
    ids = [vocabulary.get(word, unk_id) for word in words(text)]
    return [vocabulary.get("<bos>", 1), *ids, vocabulary.get("<eos>", 2)]


@wrong("encode", "unusual", "its own pattern throws punctuation away")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(w, unk_id) for w in re.findall(r"\w+", text)]


@wrong("encode", "unusual", "one unknown word ends the loop: the try stands around all of it")
def _(text, vocabulary, unk_id):
    ids = []
    try:
        for word in words(text):
            ids.append(vocabulary[word])
    except KeyError:
        ids.append(unk_id)
    return ids


@wrong("encode", "unusual", "an empty text gets one unknown id instead of none")
def _(text, vocabulary, unk_id):
    ids = [vocabulary.get(word, unk_id) for word in words(text)]
    return ids if ids else [unk_id]


@wrong("encode", "unusual", '"FILE" gets the id of "file" if only that is known')
def _(text, vocabulary, unk_id):
    ids = []
    for word in words(text):
        if word in vocabulary:
            ids.append(vocabulary[word])
        elif word.lower() in vocabulary:
            ids.append(vocabulary[word.lower()])
        else:
            ids.append(unk_id)
    return ids


@wrong(
    "encode",
    "unusual",
    'a "<unk>" in the vocabulary beats unk_id, when the two differ',
)
def _(text, vocabulary, unk_id):
    unknown = vocabulary.get("<unk>", unk_id)
    return [vocabulary.get(token, unknown) for token in words(text)]


@wrong("encode", "pair", "cuts at white space", "leaves unknown words out")
def _(text, vocabulary, unk_id):
    known = filter(lambda w: w in vocabulary, text.split(" "))
    return [vocabulary[w] for w in known]


@wrong("encode", "pair", "small letters only", "the unknown id is always 0")
def _(text, vocabulary, unk_id):
    return [vocabulary.get(word.lower(), 0) for word in words(text)]


@wrong("encode", "pair", "puts <bos> and <eos> around it", "id 0 counts as missing")
def _(text, vocabulary, unk_id):
    output = [1]
    for token in words(text):
        index = vocabulary.get(token)
        if not index:
            index = unk_id
        output.append(index)
    output.append(2)
    return output


@wrong("encode", "pair", "each word once only", "sorts the ids")
def _(text, vocabulary, unk_id):
    return sorted({vocabulary.get(w, unk_id) for w in words(text)})


@wrong("encode", "pair", "its own pattern drops punctuation", "unknown words become None")
def _(text, vocabulary, unk_id):
    tokens = re.findall(r"[A-Za-z0-9']+", text)
    return [vocabulary.get(token) for token in tokens]


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


@wrong("pad_batch", "usual", "pads on the left")
def _(sequences, pad_id):
    longest = max(map(len, sequences))
    padded = [[pad_id] * (longest - len(s)) + list(s) for s in sequences]
    return torch.tensor(padded, dtype=torch.int64)


@wrong("pad_batch", "usual", "cuts every row to the shortest sequence")
def _(sequences, pad_id):
    length = min(len(s) for s in sequences)
    out = torch.full((len(sequences), length), pad_id, dtype=torch.int64)
    for row, s in zip(out, sequences, strict=True):
        row[:] = torch.tensor(s[:length], dtype=torch.int64)
    return out


@wrong("pad_batch", "usual", "one column of padding too many")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences) + 1
    rows = []
    for s in sequences:
        rows.append(list(s) + [pad_id] * (n - len(s)))
    return torch.tensor(rows)


@wrong("pad_batch", "usual", "returns float32: torch.ones without a dtype")
def _(sequences, pad_id):
    n = max(len(seq) for seq in sequences)
    batch = torch.ones(len(sequences), n) * pad_id
    for i in range(len(sequences)):
        for j in range(len(sequences[i])):
            batch[i, j] = sequences[i][j]
    return batch


@wrong("pad_batch", "usual", "forgets batch_first: the result is (n, batch)")
def _(sequences, pad_id):
    tensors = [torch.tensor(s, dtype=torch.int64) for s in sequences]
    return pad_sequence(tensors, padding_value=pad_id)


@wrong("pad_batch", "usual", "takes the length of the first sequence for the longest")
def _(sequences, pad_id):
    n = len(sequences[0])
    return torch.tensor([(list(s) + [pad_id] * n)[:n] for s in sequences], dtype=torch.int64)


@wrong("pad_batch", "unusual", "appends to the caller's own lists")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    for s in sequences:
        while len(s) < n:
            s.append(pad_id)
    return torch.tensor(sequences)


@wrong("pad_batch", "unusual", "returns int32")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    return torch.IntTensor([[*s, *[pad_id] * (n - len(s))] for s in sequences])


@wrong("pad_batch", "unusual", "sorts the rows, longest first, as pack_padded_sequence once wanted")
def _(sequences, pad_id):
    ordered = sorted(sequences, key=len, reverse=True)
    tensors = [torch.tensor(s, dtype=torch.long) for s in ordered]
    return pad_sequence(tensors, batch_first=True, padding_value=pad_id)


@wrong("pad_batch", "unusual", "max without key=len finds the largest list, not the longest")
def _(sequences, pad_id):
    n = len(max(sequences))
    batch = torch.full((len(sequences), n), pad_id)
    for i, s in enumerate(sequences):
        batch[i, : len(s)] = torch.tensor(s, dtype=torch.int64)
    return batch


@wrong("pad_batch", "unusual", "all rows are the same list object, so the last one wins")
def _(sequences, pad_id):
    n = max([len(s) for s in sequences])
    batch = [[pad_id] * n] * len(sequences)
    for i, s in enumerate(sequences):
        batch[i][: len(s)] = s
    return torch.tensor(batch)


@wrong("pad_batch", "unusual", "float32 if the first sequence is empty, [[], [1, 2]]")
def _(sequences, pad_id):
    return pad_sequence([torch.tensor(s) for s in sequences], True, pad_id)


@wrong("pad_batch", "unusual", "an empty sequence gets no row, [[1, 2], []]")
def _(sequences, pad_id):
    kept = [s for s in sequences if s]
    n = max(len(s) for s in kept)
    return torch.tensor([s + [pad_id] * (n - len(s)) for s in kept])


@wrong("pad_batch", "unusual", "cuts sequences of more than 512 ids, BERT's limit")
def _(sequences, pad_id):
    n = min(max(len(s) for s in sequences), 512)
    rows = [s[:n] + [pad_id] * (n - len(s)) for s in sequences]
    return torch.tensor(rows, dtype=torch.int64)


@wrong("pad_batch", "unusual", "goes through float32, which changes the id 16,777,217")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    batch = torch.full((len(sequences), n), float(pad_id))
    for row, s in enumerate(sequences):
        batch[row, : len(s)] = torch.tensor(s).float()
    return batch.long()


@wrong("pad_batch", "pair", "pads on the left", "with 0")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    rows = [F.pad(torch.tensor(s, dtype=torch.long), (n - len(s), 0)) for s in sequences]
    return torch.stack(rows)


@wrong("pad_batch", "pair", "the result is (n, batch)", "float32")
def _(sequences, pad_id):
    columns = list(zip_longest(*sequences, fillvalue=pad_id))
    return torch.Tensor(columns)


@wrong("pad_batch", "pair", "one column too many", "int32")
def _(sequences, pad_id):
    n = 1
    for s in sequences:
        n = max(n, len(s) + 1)
    batch = torch.full((len(sequences), n), pad_id, dtype=torch.int32)
    for i, s in enumerate(sequences):
        for j, id_ in enumerate(s):
            batch[i, j] = id_
    return batch


@wrong("pad_batch", "pair", "rows sorted by length", "padding on the left")
def _(sequences, pad_id):
    tensors = sorted((torch.tensor(s, dtype=torch.int64) for s in sequences), key=len)
    return pad_sequence(tensors, batch_first=True, padding_value=pad_id, padding_side="left")


@wrong("pad_batch", "pair", "changes the caller's lists", "fills with 0")
def _(sequences, pad_id):
    n = max(len(s) for s in sequences)
    for s in sequences:
        s.extend([0] * (n - len(s)))
    return torch.tensor(sequences, dtype=torch.int64)


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


@wrong("embed", "usual", "divides by the root instead of multiplying")
def _(ids, table):
    d_model = table.shape[1]
    return table[ids] / math.sqrt(d_model)


@wrong("embed", "usual", "multiplies by d_model, not by its root")
def _(ids, table):
    x = table[ids]
    return x * x.size(-1)


@wrong("embed", "usual", "takes the root of vocab_size")
def _(ids, table):
    return table[ids] * len(table) ** 0.5


@wrong("embed", "usual", "d_model is always 512")
def _(ids, table):
    d_model = 512
    return table[ids] * math.sqrt(d_model)


@wrong("embed", "usual", "the root of the number of tokens, not of d_model")
def _(ids, table):
    return math.sqrt(ids.shape[-1]) * table[ids]


@wrong("embed", "unusual", "cuts the root to a whole number")
def _(ids, table):
    scale = math.isqrt(table.size(1))
    return F.embedding(ids, table) * scale


@wrong("embed", "unusual", "scales the caller's table in place")
def _(ids, table):
    table *= math.sqrt(table.size(-1))
    return table[ids]


@wrong("embed", "unusual", "makes a new random nn.Embedding instead of using the table")
def _(ids, table):
    vocab_size, d_model = table.shape
    embedding = nn.Embedding(vocab_size, d_model)
    return embedding(ids) * math.sqrt(d_model)


@wrong("embed", "unusual", "`** 1 / 2` is d_model / 2, not the root")
def _(ids, table):
    return table[ids] * table.shape[-1] ** 1 / 2


@wrong("embed", "unusual", "counts ids from 1, so id 0 gets the last row")
def _(ids, table):
    rows = table[ids - 1]
    return rows * math.sqrt(rows.shape[-1])


@wrong("embed", "unusual", "an error if the last row of the table is not in the batch")
def _(ids, table):
    one_hot = F.one_hot(ids).to(table.dtype)
    return one_hot @ table * math.sqrt(table.size(1))


@wrong("embed", "unusual", "gives zeros for id 0, taken for padding")
def _(ids, table):
    x = table[ids] * table.size(1) ** 0.5
    return x.masked_fill((ids == 0)[..., None], 0.0)


@wrong("embed", "unusual", "batch and token axis become one")
def _(ids, table):
    return table.index_select(0, ids.flatten()) * math.sqrt(table.size(1))


@wrong("embed", "unusual", "a batch of one sentence, (1, n), loses its batch axis")
def _(ids, table):
    return table[ids].squeeze() * math.sqrt(table.size(1))


@wrong("embed", "unusual", "max_norm shortens the rows, in the caller's table too")
def _(ids, table):
    return F.embedding(ids, table, max_norm=1.0) * math.sqrt(table.size(1))


@wrong("embed", "unusual", "sets the length of every row to 1 before the factor")
def _(ids, table):
    unit = F.normalize(table, dim=-1)
    return unit[ids] * math.sqrt(table.size(-1))


@wrong("embed", "pair", "ids counted from 1", "root of vocab_size")
def _(ids, table):
    vocab_size, _d_model = table.shape
    return table[ids - 1] * vocab_size**0.5


@wrong("embed", "pair", "zeros for id 0", "divides by the root")
def _(ids, table):
    d_model = table.size(1)
    keep = (ids != 0).unsqueeze(-1).to(table.dtype)
    return keep * table[ids] / math.sqrt(d_model)


@wrong("embed", "pair", "axis of size 1 is squeezed away", "factor d_model without a root")
def _(ids, table):
    vectors = F.embedding(ids, table)
    return (vectors * table.size(1)).squeeze(0)


@wrong("embed", "pair", "adds the positions already", "forgets the factor")
def _(ids, table):
    x = table[ids]
    return x + positions.sinusoidal_encoding(ids.size(1), table.size(1)).to(x)


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
