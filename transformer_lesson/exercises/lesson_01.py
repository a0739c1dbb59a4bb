"""Lesson 01: from text to ids, from ids to vectors."""

import math
import re
import string

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.text.tokenizers import words

TEXTS = (
    ("Save, then close the file.", "Save then the ."),
    ("Don't  stop:\nit's 7 o'clock!", "Don't it's 7 ! don t"),
    ("The the the END, end.", "the END . Then"),
    ("Größe ändern & 👋", "Größe 👋 ä"),
    ("", "nothing , here"),
    ("Hello unicorn…", "<pad> <bos> <eos> <unk> Hello"),
    ("close file", "file and close <unk>"),  # no word is unknown
)
"""Draw by draw: a text, and the words of its vocabulary."""


def _encode_inputs(draw: Draw) -> tuple:
    text, known = draw.one_of(TEXTS)
    known = known.split()
    asked = map(re.escape, draw.some(words(text)))
    text = re.search(r"\s*".join(asked), text)[0]  # with the spaces as they are
    ids = (1 + torch.randperm(90, generator=draw.generator)).tolist()
    ids = range(len(known)) if "<pad>" in known else [0, *ids]
    return text, dict(zip(known, ids, strict=False)), draw.one_of((95, 61, 8, 0, 5, 9, 92))


@exercise(
    reference="transformer_lesson.text.tokenizers:encode",
    make_inputs=_encode_inputs,
    draws=7,
    returns={"ids": "token"},
    hints=(
        "`words(text)` splits the text. You need one id for each word, in the same order.",
        "What should a word get that is not in the vocabulary? Not `None`: an id.",
        "A dictionary's `get` takes a second argument: what to return for a missing key.",
    ),
)
def encode(text, vocabulary, unk_id):
    """Return the id of each word, in order; a word that the vocabulary lacks gets unk_id."""
    tokens = _tokens(choose(text, lowered=text.lower()))
    unknown = choose(
        unk_id,
        none=None,
        id_0=0,
        id_1=1,
        id_3=3,
        minus_1=-1,
        next_free_id=len(vocabulary),
    )
    is_unknown = [choose(word not in vocabulary, truth=not vocabulary.get(word)) for word in tokens]
    first_unknown = [*is_unknown, True].index(True)
    asked = choose(
        tokens,
        left_out=[word for word, lacking in zip(tokens, is_unknown, strict=True) if not lacking],
        end_at_unknown=tokens[: first_unknown + 1],
        end_before_unknown=tokens[:first_unknown],
    )
    ids = _ids(asked, vocabulary, unknown)
    return _handed_back(choose(ids, unknown_for_nothing=ids or [unknown]), asked)


def _tokens(text):
    """Return what is looked up."""
    tokens = choose(
        words(text),
        at_white_space=text.split(),
        at_single_spaces=text.split(" "),
        characters=list(text),
        stripped=[word.strip(string.punctuation) for word in text.split()],
        no_punctuation=[word for word in words(text) if word[0].isalnum()],
        letters_alone=[word for word in words(text) if word.isalpha()],
        apostrophes_split=re.findall(r"\w+|[^\w\s]", text),
        runs_of_letters=re.findall(r"\w+", text),
        ascii_words=re.findall(r"[A-Za-z0-9']+", text),
        ascii_letters=re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*|[^\w\s]", text),
        whole_text=[text],
    )
    tokens = choose(tokens, each_once=list(dict.fromkeys(tokens)))
    return choose(tokens, alphabetical=sorted(tokens), backwards=tokens[::-1])


def _ids(tokens, vocabulary, unknown):
    """Return one id for each token."""
    return [
        choose(
            vocabulary.get(word, unknown),
            key_error=vocabulary[word],
            truth=vocabulary.get(word) or unknown,
            word_kept=vocabulary.get(word, word),
            asked_of_the_vocabulary=vocabulary.get(word, vocabulary["<unk>"]),
            unk_of_the_vocabulary_first=vocabulary.get(word, vocabulary.get("<unk>", unknown)),
            inverted=unknown if word in vocabulary else vocabulary[word],
            lowered_at_second_try=vocabulary.get(word, vocabulary.get(word.lower(), unknown)),
            written_down=vocabulary.setdefault(word, choose(unknown, next_free_id=len(vocabulary))),
            place_in_vocabulary=[*vocabulary, word].index(word) if word in vocabulary else unknown,
            turned_around={id_: known for known, id_ in vocabulary.items()}.get(word, unknown),
        )
        for word in tokens
    ]


def _handed_back(ids, tokens):
    """Return the ids as the function's result."""
    ids = choose(ids, each_id_once=list(dict.fromkeys(ids)))
    ids = choose(ids, ids_sorted=sorted(ids))
    return choose(
        ids,
        words_returned=tokens,
        tensor=torch.tensor(ids),
        batch_of_one=[ids],
        return_in_the_loop=ids[:1] or None,
        first_id=ids[0] if ids else None,
        last_alone=ids[-1:],
        dictionary=dict(zip(tokens, ids, strict=True)),
        with_bos_and_eos=[1, *ids, 2],
        with_eos=[*ids, 2],
    )


LENGTHS = ((1, 3, 5), (3, 1, 2, 1), (1, 2, 4, 1, 2), (4,), (4, 4, 4), (0, 5), (1, 600))
"""Draw by draw: how long the sequences are."""


def _pad_batch_inputs(draw: Draw) -> tuple:
    """Every place for the longest, a batch of one, nothing to pad, an empty sentence, any id."""
    lengths = draw.one_of(LENGTHS)
    if draw.small:
        lengths = (2, 1) if draw.number == 1 else (1, 2)
    draw.sizes |= {"batch": len(lengths), "n": max(lengths)}
    rows = draw.integers("batch n", 1, 50).tolist()
    sequences = [row[:n] for row, n in zip(rows, lengths, strict=True)]
    pad_id = draw.one_of((60, 0, 52, 70, 51, 99, 53))
    if pad_id:
        sequences[-1][-1] = 0  # the first id of the vocabulary is an id like any other
    if draw.number == 6:
        sequences[0][0] = 2**24 + 1  # the first whole number that float32 does not have
    return sequences, pad_id


def _each_sequence_comes_first(answer, inputs: tuple, batch: Tensor) -> str | None:
    for i, sequence in enumerate(inputs[0]):
        row = batch[i, : len(sequence)].tolist()
        if row != sequence:
            return (
                f"Row {i} must begin with sequence {i}, {sequence}. Yours begins with {row}.\n"
                "Where does the padding stand, and does each row get its own sequence?"
            )
    return None


def _rows(sequences, n, fill):
    """Return the sequences as rows of n ids."""
    rows = [
        choose(
            sequence + [fill] * (n - len(sequence)),
            on_the_left=[fill] * (n - len(sequence)) + sequence,
            one_padding_each=[*sequence, fill],
            as_many_to_each=sequence + [fill] * n,
            unpadded=sequence,
            last_repeated=sequence + sequence[-1:] * (n - len(sequence)),
            backwards=sequence[::-1] + [fill] * (n - len(sequence)),
        )
        for sequence in sequences
    ]
    return choose(
        rows,
        in_place=[_written_into(*pair) for pair in zip(sequences, rows, strict=True)],
        one_row_shared=[_on_top_of_each_other(rows, sequences)] * len(rows),
    )


def _as_batch(rows, n, sequences, pad_id):
    """Return the rows as one tensor."""
    batch = choose(
        torch.tensor(rows, dtype=torch.int64),
        torch.stack([torch.tensor(row, dtype=torch.int64) for row in rows]),
        torch.tensor([row[:n] for row in rows], dtype=torch.int64),
        shortest=torch.tensor([row[:n] for row in rows], dtype=torch.int64),
    )
    batch = choose(batch, zeros_replaced=batch.masked_fill(batch == 0, pad_id))
    batch = choose(
        batch,
        decimal=batch.float(),
        decimal_beside_empty=batch if all(sequences) else batch.float(),
        float32_on_the_way=batch.float().long(),
        int32=batch.int(),
    )
    return choose(
        batch,
        no_tensor=rows,
        list_of_tensors=[torch.tensor(row) for row in rows],
        time_first=batch.T,
        squeezed=batch.squeeze(),
        one_axis_more=batch[None],
        flat=batch.flatten(),
        joined=torch.tensor(sum(sequences, [])),
        mask_returned=batch != pad_id,
        lengths_too=(batch, [len(sequence) for sequence in sequences]),
        first_row=batch[0],
        batch_of_first_row=batch[:1],
    )


def _written_into(sequence, row):
    """Return a sequence that has become the row."""
    sequence[:] = row
    return sequence


def _on_top_of_each_other(rows, sequences):
    """Return the one row that is left when all sequences are written into the same list."""
    shared = list(rows[0])
    for sequence in sequences:
        shared[: len(sequence)] = sequence
    return shared


def _embed_inputs(draw: Draw) -> tuple:
    """All ids, the last one not always among them; one sentence, one token; strided memory."""
    if draw.number == 2:
        draw.sizes["batch"] = 1
    if draw.number == 3 or draw.small:
        draw.sizes["n"] = 1
    if draw.number in (0, 1, 4) and not draw.small:
        draw.sizes["d_model"] = 2 * draw.size("pair", at_least=3)
    vocab_size = draw.size("vocab_size", at_least=3)
    table = draw.normal("vocab_size d_model")
    ids = draw.integers("batch n", 0, vocab_size - 1)
    ids[0, 0] = 1
    ids[-1, -1] = 0 if draw.number % 2 else vocab_size - 1
    if draw.number == 5:  # in double precision, and both lie in memory as their transposes
        return ids.T.contiguous().T, table.double().T.contiguous().T
    return ids, table


def _same_every_time(answer, inputs: tuple, embedding: Tensor) -> str | None:
    if torch.allclose(answer(*inputs).double(), embedding.double()):
        return None
    return (
        "Your function gives another result each time that it is called with the same arguments.\n"
        "`nn.Embedding(...)` makes a new table of random numbers: look up in `table`."
    )


def _each_vector_is_a_row(answer, inputs: tuple, embedding: Tensor) -> str | None:
    ids, table = inputs
    looked_up = F.normalize(table[ids].double(), dim=-1)
    alike = (F.normalize(embedding.double(), dim=-1) * looked_up).sum(-1).abs() > 0.999
    if alike.all():
        return None
    sentence, token = (~alike).nonzero()[0].tolist()
    return (
        f"Token {token} of sentence {sentence} has id {ids[sentence, token]}, so its vector must "
        f"be row {ids[sentence, token]} of the table, times a number. Yours is not."
    )


@exercise(
    reference="transformer_lesson.model.embedding:embed",
    make_inputs=_embed_inputs,
    draws=6,
    returns={"embedding": "batch n d_model"},
    hints=(
        "Row i of the table is the vector of token i. Indexing does the lookup.",
        "`table[ids]` has shape (batch, n, d_model). The paper scales it.",
        "Multiply by the square root of the table's last size, `table.size(-1)`.",
    ),
    invariants=(_same_every_time, _each_vector_is_a_row),
)
def embed(ids, table):
    """Look the ids up and scale by sqrt(d_model)."""
    d_model = choose(
        table.size(-1),
        vocabulary=table.size(0),
        sentence_length=ids.size(-1),
        number_of_sentences=ids.size(0),
        always_512=512,
    )
    scale = choose(
        math.sqrt(d_model),
        unscaled=1.0,
        inverse=1 / math.sqrt(d_model),
        not_the_root=d_model,
        halved=d_model / 2,
        whole_root=math.isqrt(d_model),
        fourth_root=d_model**0.25,
        squared=d_model**2,
        divided_by_d_model=1 / d_model,
        logarithm=math.log(d_model),
    )
    looked_up = _looked_up(choose(table, in_place=table.mul_(scale)), ids)
    embedding = choose(looked_up * scale, in_place=looked_up, added=looked_up + scale)
    embedding = choose(
        embedding,
        padding_of_zeros=embedding.masked_fill((ids == 0)[..., None], 0.0),
        with_positions=embedding + sinusoidal_encoding(*embedding.shape[1:]),
    )
    return choose(
        embedding,
        squeezed=embedding.squeeze(),
        batch_squeezed=embedding.squeeze(0),
        flat=embedding.flatten(0, 1),
        tokens_first=embedding.transpose(0, 1),
        d_model_before_n=embedding.mT,
        summed=embedding.sum(1),
        averaged=embedding.mean(1),
        first_sentence=embedding[0],
        integers=embedding.long(),
    )


@exercise(
    reference="transformer_lesson.text.batches:pad_batch",
    make_inputs=_pad_batch_inputs,
    draws=7,
    returns={"batch": "batch n"},
    hints=(
        "How wide must the result be so that every sequence fits, and no wider?",
        "Each row is the sequence, then as many `pad_id` as it is shorter than the longest.",
        "`sequence + [pad_id] * (longest - len(sequence))` is one row; `torch.tensor` turns "
        "the list of rows into a batch.",
    ),
    invariants=(_each_sequence_comes_first,),
)
def pad_batch(sequences, pad_id):
    """Return one row per sequence, filled up with pad_id to the length of the longest."""
    sequences = choose(
        sequences,
        longest_first=sorted(sequences, key=len, reverse=True),
        longest_first_in_place=sequences.sort(key=len, reverse=True) or sequences,
        shortest_first=sorted(sequences, key=len),
        empty_left_out=[sequence for sequence in sequences if sequence],
    )
    lengths = [len(sequence) for sequence in sequences]
    n = choose(
        max(lengths),
        one_too_many=max(lengths) + 1,
        one_too_few=max(lengths) - 1,
        shortest=min(lengths),
        length_of_first=lengths[0],
        length_of_last=lengths[-1],
        length_of_largest=len(max(sequences)),
        number_of_sequences=len(sequences),
        all_lengths=sum(lengths),
        at_most_512=min(max(lengths), 512),
        multiple_of_8=math.ceil(max(lengths) / 8) * 8,
    )
    rows = _rows(sequences, n, choose(pad_id, id_0=0, id_1=1, minus_1=-1, minus_100=-100))
    return _as_batch(rows, n, sequences, pad_id)


def _looked_up(table, ids):
    """Return the table's rows for the ids."""
    table = choose(table, length_1=F.normalize(table, dim=-1))
    return choose(
        table[ids],
        norm_of_1_at_most=F.embedding(ids, table, max_norm=1.0),
        row_before=table[ids - 1],
        row_after=table[(ids + 1) % len(table)],
        columns=table[:, ids],
        columns_by_transposing=table.T[ids],
        one_hot_too_narrow=F.one_hot(ids).to(table.dtype) @ table,
        first_rows=table[torch.arange(ids.size(-1))].expand(*ids.shape, table.size(-1)),
        id_times_first_row=ids[..., None] * table[0],
    )
