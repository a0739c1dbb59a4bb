"""Byte pairs in plain Python: learning the merges, and splitting a word by them.

Short, because the algorithm is. `BytePairTokenizer` has a library do the same, fast and on bytes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise


def apply_byte_pairs(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """Cut a word into characters, then make each merge, in order, wherever it fits.

    Args:
        word: one word; a space in front of it is written "␣".
        merges: pairs of pieces, in the order in which training found them.

    Returns:
        The pieces, from left to right.
    """
    pieces = list(word)
    for first, second in merges:
        merged = []
        for piece in pieces:
            if merged and merged[-1] == first and piece == second:
                merged[-1] += piece
            else:
                merged.append(piece)
        pieces = merged
    return pieces


def train_byte_pairs(counts: Mapping[str, int], n_merges: int) -> list[tuple[str, str]]:
    """Find the merges: again and again, the most frequent pair of neighboring pieces.

    Args:
        counts: how often each word occurs.
        n_merges: how many merges to find; fewer if no two pieces are left side by side.

    Returns:
        Pairs of pieces, in the order in which they were found. Ties go to the pair that occurs
        first: in the earliest word, farthest to the left.

    Source: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units".
    Differs: splits every word again after each merge, which is slower and shorter.
    """
    merges = []
    for _ in range(n_merges):
        frequency = Counter()
        for word, count in counts.items():
            for pair in pairwise(apply_byte_pairs(word, merges)):
                frequency[pair] += count
        if not frequency:
            break
        merges.append(max(frequency, key=frequency.get))  # of equal ones, the first
    return merges
