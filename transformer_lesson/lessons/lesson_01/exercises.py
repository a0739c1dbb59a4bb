"""Lesson 01: byte pairs, and from ids to vectors.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math
from collections import Counter
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.text.byte_pairs import apply_byte_pairs as pieces_by

LETTERS = "abcdefghiklmnoprstuwz"
CUTS = (
    ("abcbcd", "b c, bc d, a bc"),  # the first one fits twice
    ("abc", "a b, b c, a bc"),  # the second and the third would fit, had the first not been made
    ("abc", "b c, a b"),  # the pair farther left comes later
    ("abcde", "c d, e cd, a b, ab cd"),  # one that would fit the other way around
    ("abca", ""),
    ("abab", "a b, ab ab"),
    ("a", "a b, b a"),
    ("␣aaab", "a a, ␣ a"),  # from the right, the second one would fit
)
"""Draw by draw: a word and its merges, in letters that each draw chooses."""


def _apply_byte_pairs_inputs(draw: Draw) -> tuple:
    word, merges = draw.one_of(CUTS)
    order = torch.randperm(len(LETTERS), generator=draw.generator).tolist()
    letters = "".join(LETTERS[i] for i in order[:6])
    if draw.number in (5, 7):  # characters that mean something else where text is searched
        letters = f".\\{letters[2:]}"
    renamed = str.maketrans("abcdef", letters)
    pairs = [tuple(pair.split()) for pair in merges.translate(renamed).split(", ") if pair]
    return word.translate(renamed), pairs


@breaks("pieces that do not make the word again")
def _pieces_make_the_word(answer, inputs: tuple, pieces: list) -> str | None:
    if "".join(pieces) == inputs[0]:
        return None
    return (
        f"Put together, the pieces must be the word again, {inputs[0]!r}. Yours make "
        f"{''.join(pieces)!r}.\nIs a piece lost, or there twice?"
    )


@exercise(
    reference="transformer_lesson.text.byte_pairs:apply_byte_pairs",
    make_inputs=_apply_byte_pairs_inputs,
    draws=8,
    returns={"pieces": "piece"},
    hints=(
        "Start with `pieces = list(word)`. Then take the merges one after the other; each makes "
        "a new list of pieces from the last one.",
        "For one merge, walk over the pieces from left to right and build the new list. When do "
        "you add a piece to it, and when do you make its last piece longer instead?",
        "A piece joins the last one of the new list if those two are the pair: "
        "`if merged and (merged[-1], piece) == pair: merged[-1] += piece`. Otherwise append it.",
    ),
    invariants=(_pieces_make_the_word,),
)
def apply_byte_pairs(word, merges):
    """Cut a word into characters, then make each merge, in order, wherever it fits."""
    pieces = _characters(word)
    pairs = choose(
        merges,
        longest_first=sorted(merges, key=lambda pair: -len("".join(pair))),
        alphabetical=sorted(merges),
        until_one_does_not_fit=_fitting(word, merges),
        first_merge_alone=merges[:1],
        each_from_the_start=merges[-1:],
        none_made=[],
    )
    for pair in pairs:
        pieces = choose(
            _merged(pieces, _places(pieces, pair)),
            inside_pieces=" ".join(pieces).replace(" ".join(pair), "".join(pair)).split(),
            gaps_left=_merged_with_gaps(pieces, pair),
        )
    return choose(pieces, gaps_left=list(filter(None, pieces)), end_of_word=[*pieces, "</w>"])


def _characters(word):
    """Return the pieces to begin with."""
    return choose(list(word), whole_word=[word])


def _places(pieces, pair):
    """Return where a pair is joined: the indices of its left-hand pieces."""
    fitting = [i for i, both in enumerate(pairwise(pieces)) if both == pair]
    places = []
    for i in fitting:
        if i - 1 not in places and i + 1 not in places:
            places.append(i)
    return places


def _merged(pieces, places):
    """Return pieces with each of those at these places joined to the next."""
    merged = []
    for i in range(len(pieces)):
        both = pieces[i : i + 2]
        if i in places:
            joined = "".join(both)
            merged.append(joined)
        elif i - 1 not in places:
            merged.extend(both[:1])
    return merged


def _merged_with_gaps(pieces, pair):
    """Return pieces with a pair merged, and an empty one where its right-hand piece was."""
    pieces = list(pieces)
    for i in range(len(pieces) - 1):
        if (pieces[i], pieces[i + 1]) == pair:
            pieces[i : i + 2] = ["".join(pair), ""]
    return pieces


def _fitting(word, merges):
    """Return the merges before the first one that does not fit."""
    for number in range(len(merges)):
        if pieces_by(word, merges[:number]) == pieces_by(word, merges[: number + 1]):
            return merges[:number]
    return merges


TRAININGS = (
    (4, 3, 9),
    (4, 3, 1),
    (5, 5, 9),
    (2, 20, 3),
    (4, 4, 2),
    (3, 3, 1),
    (4, 2, 4),
    (2, 1, 1),
)
"""Draw by draw: how many words, how many merges, and how often a word occurs at most."""


def _train_byte_pairs_inputs(draw: Draw) -> tuple:
    """Clear counts; ties alone; many merges; more than there are pairs; few ties; three traps."""
    n_words, n_merges, most = draw.one_of(TRAININGS)
    longest = 5
    if draw.small:
        n_words, longest = draw.small[0], 1 + draw.small[-1]
        n_merges = min(n_merges, draw.small[-1]) if n_merges < 20 else longest
    order = torch.randperm(len(LETTERS), generator=draw.generator).tolist()
    letters, counts = [LETTERS[i] for i in order[:4]], {}
    if draw.number == 5:  # the second merge would fit the last word, had the first not been made
        a, b, c, _ = letters
        most = int(draw.integers("", 5, 9))
        return {a + b: most + 3, b + c: most, a + b + c: 1}, n_merges
    if draw.number == 6:  # of equally frequent pairs, the first one stands in rarer words
        a, b, c, d = letters
        return {a + b: 1, c + d: 3, a + b + d: 2, "␣" + a: 4}, n_merges
    if draw.number == 7:  # the pair of two equal letters occurs in two places, which overlap
        a, b, c, d = letters
        return {b + c + d: 1, 3 * a: 1}, n_merges
    while len(counts) < n_words:
        length = int(draw.integers("", 2, longest + 1))
        chosen = torch.randint(4, (length,), generator=draw.generator).tolist()
        word = "".join(letters[i] for i in chosen)
        if not any(3 * letter in word for letter in letters):
            counts[word] = int(draw.integers("", 1, most + 1))
    return counts, n_merges


@exercise(
    reference="transformer_lesson.text.byte_pairs:train_byte_pairs",
    make_inputs=_train_byte_pairs_inputs,
    draws=8,
    returns={"merges": "merge"},
    hints=(
        "Each round counts all neighbors anew, with every word cut by the merges found so far. "
        "`apply_byte_pairs(word, merges)` does the cutting.",
        "A `Counter` or a dictionary holds how often each pair stands there. A word that occurs "
        "5 times adds 5 for each of its pairs: `frequency[pair] += count`.",
        "`zip(pieces, pieces[1:])` gives the neighbors of a word, and "
        "`max(frequency, key=frequency.get)` the most frequent pair, the first of equal ones. "
        "`max` of nothing is an error, so `break` before it if no pair is left.",
    ),
)
def train_byte_pairs(counts, n_merges):
    """Find n_merges pairs of neighbors, each the most frequent one after those before it."""
    merges, frequency = [], {}
    for _ in range(n_merges):
        cut_by = choose(merges, never_merged=[], the_last_one_alone=merges[-1:])
        frequency = _frequency(counts, cut_by, choose({}, never_reset=frequency))
        if choose(
            not frequency,
            error_at_the_end=False,
            rare_ones_left_out=max(frequency.values(), default=0) < 2,
        ):
            break
        best = _best(frequency)
        merges = [*merges, best]
    return choose(merges, counted_once=_most_common(counts, n_merges))


def _best(frequency):
    """Return the most frequent pair."""
    return choose(
        max(frequency, key=frequency.get),
        alphabetical=min(frequency, key=lambda pair: (-frequency[pair], pair)),
        reverse_alphabetical=max(frequency, key=lambda pair: (frequency[pair], pair)),
    )


def _frequency(words, merges, frequency):
    """Add how often each pair of neighbors occurs, in the order in which pairs are met."""
    for word, count in words.items():
        pieces = choose(
            pieces_by(word, merges),
            end_of_word=pieces_by([*word, "</w>"], merges),
            inside_pieces=_pieces_by_replacing(word, merges),
        )
        pairs = list(pairwise(pieces))
        for pair in pairs:
            before = frequency.get(pair, 0)
            frequency[pair] = before + count
    return frequency


def _most_common(counts, n_merges):
    """Return the most frequent pairs of characters."""
    frequency = Counter()
    for word, count in counts.items():
        for pair in pairwise(word):
            frequency[pair] += count
    return [pair for pair, _ in frequency.most_common(n_merges)]


def _pieces_by_replacing(word, merges):
    """Return the pieces of a word if merges are replacements in a text."""
    text = " ".join(word)
    for pair in merges:
        text = text.replace(" ".join(pair), "".join(pair))
    return text.split()


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


@breaks("another result at each call")
def _same_every_time(answer, inputs: tuple, embedding: Tensor) -> str | None:
    if torch.allclose(answer(*inputs).double(), embedding.double()):
        return None
    return (
        "Your function gives another result each time that it is called with the same arguments.\n"
        "`nn.Embedding(...)` makes a new table of random numbers: look up in `table`."
    )


@breaks("vectors that are no rows of the table")
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
        table.size(-1), vocabulary=table.size(0), sentence_length=ids.size(-1), always_512=512
    )
    scale = choose(
        math.sqrt(d_model),
        unscaled=1.0,
        inverse=1 / math.sqrt(d_model),
        not_the_root=d_model,
        halved=d_model / 2,
        whole_root=math.isqrt(d_model),
        squared=d_model**2,
    )
    looked_up = _looked_up(choose(table, in_place=table.mul_(scale)), ids)
    embedding = choose(looked_up * scale, in_place=looked_up)
    embedding = choose(
        embedding,
        padding_of_zeros=embedding.masked_fill((ids == 0)[..., None], 0.0),
        with_positions=embedding + sinusoidal_encoding(*embedding.shape[1:]),
    )
    return choose(embedding, flat=embedding.flatten(0, 1), summed=embedding.sum(1))


def _looked_up(table, ids):
    """Return the table's rows for the ids."""
    table = choose(table, length_1=F.normalize(table, dim=-1))
    return choose(
        table[ids],
        norm_of_1_at_most=F.embedding(ids, table, max_norm=1.0),
        row_before=table[ids - 1],
        row_after=table[(ids + 1) % len(table)],
        one_hot_too_narrow=F.one_hot(ids).to(table.dtype) @ table,
    )
