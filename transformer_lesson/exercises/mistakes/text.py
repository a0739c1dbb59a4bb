"""Mistakes in lessons 01 and 02: ids, padding, embeddings, positions."""

import math

import torch

from transformer_lesson.exercises.specification import Mistake
from transformer_lesson.text.tokenizers import words


def pad_rows(sequences, pad_id, longest=None, left=False):
    """Pad by joining lists, with places for a bug."""
    n = longest or max(map(len, sequences))
    filled = [(s, [pad_id] * (n - len(s))) for s in sequences]
    return torch.tensor([f + s if left else s + f for s, f in filled])


def _pad_in_place(sequences, pad_id):
    n = max(map(len, sequences))
    for sequence in sequences:
        sequence.extend([pad_id] * (n - len(sequence)))
    return torch.tensor(sequences)


def _cut_rows(sequences, pad_id):
    shortest = min(map(len, sequences))
    return torch.tensor([sequence[:shortest] for sequence in sequences])


def _scale_the_table(ids, table):
    table *= math.sqrt(table.size(-1))
    return table[ids]


def _angles(position, two_i, d_model, base):
    return position / base ** (two_i / d_model)


def sinusoids(n, d_model, base=10000.0, first=0, even=torch.sin, odd=torch.cos, angles=_angles):
    """Encode positions in float64, with places for a bug."""
    position = torch.arange(first, first + n, dtype=torch.float64)[:, None]
    angle = angles(position, torch.arange(0, d_model, 2), d_model, base)  # (n, d_model / 2)
    return torch.stack([even(angle), odd(angle)], dim=-1).flatten(1).float()


def _halves(*sizes):
    encoding = sinusoids(*sizes)
    return torch.cat([encoding[:, 0::2], encoding[:, 1::2]], dim=1)


def _one_angle_each(n, d_model, base):
    column = torch.arange(d_model)
    angle = _angles(torch.arange(n)[:, None], column, d_model, base)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


TEXT_MISTAKES = {
    "encode": (
        Mistake(
            "a None among the ids",
            "A list with a `None` in it cannot become a tensor, so the failure comes later, far "
            "from its cause. What does a dictionary's `get` return for a missing key, unless "
            "told?",
            lambda t, v, unk: [v.get(w) for w in words(t)],
        ),
        Mistake(
            "leaving out the unknown words",
            'The sentence gets shorter, and the model never learns that a word stood there: "not '
            'too bad" reads as "not bad" if "too" is unknown. Every word needs an id, this one '
            "`unk_id`.",
            lambda t, v, unk: [v[w] for w in words(t) if w in v],
        ),
        Mistake(
            "splitting at white space",
            'A comma sticks to its word, and "file," is not in the vocabulary although "file" is, '
            "so common words become unknown. `words(text)` parts words from punctuation.",
            lambda t, v, unk: [v.get(w, unk) for w in t.split()],
        ),
        Mistake(
            "one id for each character",
            "Looping over a text gives its characters, and hardly any of them is in a vocabulary "
            "of words. Which function cuts the text into words first?",
            lambda t, v, unk: [v.get(character, unk) for character in t],
        ),
        Mistake(
            "lower-casing the text",
            "The vocabulary has its own spelling. A word that it holds with a capital is no "
            "longer found, and becomes `unk_id`. Look each word up as it stands.",
            lambda t, v, unk: [v.get(w, unk) for w in words(t.lower())],
        ),
        Mistake(
            "id 0 for an unknown word",
            "In this course id 0 is padding, so the masks would hide unknown words as if nothing "
            "stood there. Which argument says what an unknown word gets?",
            lambda t, v, unk: [v.get(w, 0) for w in words(t)],
        ),
        Mistake(
            "a test for truth instead of a test for None",
            "Id 0 is false in Python, so `get(word) or unk_id` makes the word with id 0 unknown. "
            "`get` takes a second argument for what is missing.",
            lambda t, v, unk: [v.get(w) or unk for w in words(t)],
        ),
        Mistake(
            "an error at the first unknown word",
            "Real text always has words that the vocabulary lacks, and a translator must not stop "
            "at them. Square brackets raise `KeyError`. What looks a key up without raising?",
            lambda t, v, unk: [v[w] for w in words(t)],
        ),
    ),
    "pad_batch": (
        Mistake(
            "padding on the left",
            "Token i of a sentence then stands in another column in each row, and learns another "
            "position each time. Here the padding comes after the tokens.",
            lambda s, p: pad_rows(s, p, left=True),
        ),
        Mistake(
            "padding with 0 whatever pad_id is",
            "The mask looks for `pad_id`. Where another id fills the gap, attention reads the "
            "padding as if it were a word. Which argument holds the id to use?",
            lambda s, p: pad_rows(s, 0),
        ),
        Mistake(
            "one column too many",
            "Even the longest row ends in padding, and every layer computes a column for nothing. "
            "Where do you add 1 to a length?",
            lambda s, p: pad_rows(s, p, longest=max(map(len, s)) + 1),
        ),
        Mistake(
            "cutting every row to the shortest",
            "All words after that length are lost: the model learns from beginnings of sentences. "
            "`zip` and `min` stop at the shortest sequence. Which length must the rows have?",
            _cut_rows,
        ),
        Mistake(
            "ids stored as decimal numbers",
            "An embedding looks up rows by whole numbers and refuses 3.0. `torch.zeros` and "
            "`torch.empty` make decimal numbers unless you give them a `dtype`.",
            lambda s, p: pad_rows(s, p).float(),
        ),
        Mistake(
            "rows that are no tensor yet",
            "The rows are right, but a list of lists has no shape, and no layer takes it. One "
            "call turns rows of equal length into a batch.",
            lambda s, p: pad_rows(s, p).tolist(),
        ),
        Mistake(
            "padding the caller's own lists",
            "The batch is right, but `sequences` is longer than before, so the next batch made "
            "from it takes padding for words. Build a new list for each row: `+` makes one.",
            _pad_in_place,
        ),
    ),
    "embed": (
        Mistake(
            "embeddings without their scale",
            "A table's numbers are small, about 1 / sqrt(d_model), and positions of size 1 are "
            "added next. Unscaled, the words drown in their positions. What does the paper "
            "multiply by?",
            lambda ids, table: table[ids],
        ),
        Mistake(
            "dividing by the root of d_model",
            "In attention the root makes large numbers smaller; here it must make small numbers "
            "larger. Divided, the words vanish beside the positions that are added next.",
            lambda ids, table: table[ids] / table.size(1) ** 0.5,
        ),
        Mistake(
            "the root of vocab_size",
            "The table has shape (vocab_size, d_model), and `len(table)` is the number of words. "
            "A vector's size depends on how many numbers it has: which axis counts them?",
            lambda ids, table: table[ids] * len(table) ** 0.5,
        ),
        Mistake(
            "multiplying by d_model without a root",
            "The words become so large that the positions, of size 1, are hardly seen beside "
            "them, and word order fades. The numbers of a vector are about 1 / sqrt(d_model) to "
            "begin with.",
            lambda ids, table: table[ids] * table.size(1),
        ),
        Mistake(
            "the root of the sentence's length",
            "The same word gets a larger vector in a longer sentence, so its meaning changes with "
            "the padding of its batch. `ids.size(-1)` counts tokens: whose last axis is d_model?",
            lambda ids, table: table[ids] * ids.size(-1) ** 0.5,
        ),
        Mistake(
            "scaling the table in place",
            "This call's result is right, but the table has grown, and grows again at every call "
            "until the numbers overflow. Multiply what you looked up, not the table.",
            _scale_the_table,
        ),
    ),
    "sinusoidal_encoding": (
        Mistake(
            "positions counted from 1",
            "Row 0 holds the angles of position 1. A model trained with this lives with it, yet "
            "it does not fit encodings that follow the formula, where pos begins at 0.",
            lambda *sizes: sinusoids(*sizes, first=1),
        ),
        Mistake(
            "all sines first, then all cosines",
            "Some libraries do this, and a model can learn with it, but it is not the formula: "
            "there the two of one angle stand side by side. Which columns does `0::2` pick?",
            _halves,
        ),
        Mistake(
            "sines and cosines in each other's place",
            "The formula gives even columns the sine and odd columns the cosine. Position 0 then "
            "begins 0, 1. Which of the two do you write into `encoding[:, 0::2]`?",
            lambda *sizes: sinusoids(*sizes, even=torch.cos, odd=torch.sin),
        ),
        Mistake(
            "a base of 10000 whatever is asked for",
            "The base decides how slow the slowest wave is, and so which distances can be told "
            "apart. It is an argument, and your formula does not use it.",
            lambda n, d, base: sinusoids(n, d),
        ),
        Mistake(
            "i in the exponent instead of 2i",
            "The waves slow down half as fast as they should: the slowest one reaches the root of "
            "the base only, so far positions look alike sooner. What does `arange` need as its "
            "step?",
            lambda *sizes: sinusoids(
                *sizes, angles=lambda p, two_i, d, b: p / b ** (two_i / 2 / d)
            ),
        ),
        Mistake(
            "an angle of its own for every column",
            "A sine and a cosine of the same angle turn together, and that makes a shift by k "
            "positions one rotation, the same everywhere. Which columns must share an angle?",
            _one_angle_each,
        ),
        Mistake(
            "an exponent that does not grow along the columns",
            "Here 2i multiplies one fixed frequency, so the waves get faster evenly instead of "
            "slower and slower. 2i belongs in the exponent: each column has a power of its own.",
            lambda *sizes: sinusoids(
                *sizes, angles=lambda p, two_i, d, b: p * two_i / b ** (1 / d)
            ),
        ),
        Mistake(
            "angles taken for degrees",
            "A position is an angle in radians, and so are the arguments of `sin` and `cos`. "
            "Turned from degrees, neighboring positions are 57 times closer and hardly differ.",
            lambda *sizes: sinusoids(*sizes, angles=lambda *a: torch.deg2rad(_angles(*a))),
        ),
    ),
}
