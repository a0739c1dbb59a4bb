"""Lesson 01: byte pairs, and nearest neighbors in a table.

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
from transformer_lesson.text.byte_pairs import apply_byte_pairs as pieces_by

LETTERS = "abcdefghiklmnoprstuwz"
CUTS = (
    ("abcbcd", "b c, bc d, a bc"),  # the first one fits twice
    ("abce", "a b, b c, a bc"),  # the second and the third would fit, had the first not been made
    ("abc", "b c, a b"),  # the pair farther left comes later
    ("abcde", "c d, e cd, a b, ab cd"),  # one that would fit the other way around
    ("abca", ""),
    ("ababab", "a b, ab ab"),  # the first fits three times
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
        newest_first=merges[::-1],
    )
    for pair in pairs:
        pieces = choose(
            _merged(pieces, _places(pieces, pair)),
            inside_pieces=" ".join(pieces).replace(" ".join(pair), "".join(pair)).split(),
            gaps_left=_merged_with_gaps(pieces, pair),
            second_piece_kept=_merged_and_kept(pieces, pair),
        )
    return choose(
        pieces,
        gaps_left=list(filter(None, pieces)),
        end_of_word=[*pieces, "</w>"],
        place_by_place=_place_by_place(word, merges),
    )


def _characters(word):
    """Return the pieces to begin with."""
    return choose(list(word), whole_word=[word])


def _places(pieces, pair):
    """Return where a pair is joined: the indices of its left-hand pieces."""
    same = [i for i, both in enumerate(pairwise(pieces)) if both == pair]
    spelled_alike = [i for i, both in enumerate(pairwise(pieces)) if "".join(both) == "".join(pair)]
    before_the_last = [i for i in same if i < len(pieces) - 2]
    after_the_first = [i for i in same if i]
    fitting = choose(
        same,
        strings_compared=spelled_alike,
        last_pair_unseen=before_the_last,
        first_pair_unseen=after_the_first,
    )
    places = []
    for i in choose(
        fitting,
        first_place_alone=fitting[:1],
        last_place_alone=fitting[-1:],
        from_the_right=fitting[::-1],
    ):
        near = choose((i - 1, i + 1), place_after_skipped=(i - 2, i - 1, i + 1))
        if not {*near} & {*places}:
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
            merged.extend(choose(both[:1], last_piece_lost=both[:1] if both[1:] else []))
    return merged


def _place_by_place(word, merges):
    """Return pieces made by all merges at the first place, then by all at the next one."""
    pieces, i = list(word), 0
    while i < len(pieces) - choose(1, last_pair_unseen=2):
        pair = (*pieces[i : i + 2],)
        if pair in merges:
            pieces[i : i + 2] = ["".join(pair)]
        else:
            i += 1
    return pieces


def _merged_with_gaps(pieces, pair):
    """Return pieces with a pair merged, and an empty one where its right-hand piece was."""
    pieces = list(pieces)
    for i in range(len(pieces) - 1):
        if (pieces[i], pieces[i + 1]) == pair:
            pieces[i : i + 2] = ["".join(pair), ""]
    return pieces


def _merged_and_kept(pieces, pair):
    """Return pieces with a pair merged wherever it occurs, and its right-hand piece once more."""
    joined = "".join(pair)
    merged = [joined if (*pieces[i : i + 2],) == pair else piece for i, piece in enumerate(pieces)]
    return choose(merged, last_piece_lost=merged[:-1])


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
    if draw.number == 6:  # of equally frequent pairs, the first one occurs in rarer words
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


def _nearest_neighbors_inputs(draw: Draw) -> tuple:
    """Many rows and few; two at an obtuse angle; some that lean away from all others."""
    n, d_model = draw.size("n", at_least=2), draw.size("d_model", at_least=2)
    if draw.number == 2:
        n = draw.sizes["n"] = 2
    while True:
        vectors = draw.normal(f"{n} {d_model}")
        if draw.number in (2, 3):  # the first row has a negative cosine with each other row
            vectors[1:] -= (1 + (vectors[1:] @ vectors[0]).abs())[:, None] * vectors[0]
        if draw.number == 4:  # long rows and short ones
            vectors *= draw.positive(f"{n} 1") ** 8
        if _clear(vectors):
            return (vectors.double() if draw.number == 1 else vectors,)


def _clear(vectors: Tensor) -> bool:
    """Return whether each row's nearest neighbor is nearer than the others by more than a digit."""
    if (vectors.norm(dim=-1) < 0.05).any():
        return False
    rows = F.normalize(vectors, dim=-1)
    best = (rows @ rows.mT).fill_diagonal_(-2).topk(min(2, len(rows))).values
    return bool((best[:, 0] - best[:, 1] > 1e-3).all())


@exercise(
    reference="transformer_lesson.lessons.lesson_01.neighbors:nearest_neighbors",
    make_inputs=_nearest_neighbors_inputs,
    returns={"neighbors": "n"},
    hints=(
        "A cosine is the dot product of two vectors, each divided by its length. Divide first. "
        "Then one matrix product gives all n times n cosines.",
        "`rows = F.normalize(vectors, dim=-1)` and `cosines = rows @ rows.T`. Every row has the "
        "cosine 1 with itself, on the diagonal. Make it so low that it can't win.",
        "`cosines.fill_diagonal_(-math.inf)` takes each row out of its own list, and "
        "`cosines.argmax(dim=-1)` says where each list is largest.",
    ),
)
def nearest_neighbors(vectors):
    """Return, for each row, the number of the other row with the largest cosine."""
    rows = choose(
        F.normalize(vectors, dim=-1),
        dot_product=vectors,
        columns=F.normalize(vectors, dim=0),
        centered=F.normalize(vectors - vectors.mean(dim=0), dim=-1),
    )
    alike = rows @ rows.mT
    alike = choose(
        alike,
        distance=-torch.cdist(vectors, vectors),
        absolute=alike.abs(),
        farthest=-alike,
    )
    itself = torch.eye(len(vectors), dtype=torch.bool)
    to_others = choose(
        alike.masked_fill(itself, -math.inf),
        itself=alike,
        zero_for_itself=alike.masked_fill(itself, 0.0),
        own_place_cut_out=_without_diagonal(alike),
    )
    return choose(to_others.argmax(dim=-1), cosines=to_others.amax(dim=-1))


def _without_diagonal(square):
    """Return a square matrix without its diagonal, one column narrower."""
    n = len(square)
    return square.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)
