"""Tables of characters: how often each one followed the characters before it."""

import math
from collections import Counter
from collections.abc import Callable


def pieces_of(text: str, n: int) -> Counter:
    """Return how often each piece of `n` characters occurs in a text."""
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


class CharacterTables:
    """What followed each context of 0, 1, 2, ... characters, and how often.

    Args:
        text: to count in.
        longest: the most characters of a piece: its context and the character that follows.
        vocab_size: different characters that are possible, in this text and in others.
    """

    def __init__(self, text: str, longest: int, vocab_size: int):
        self.vocab_size = vocab_size
        self.counts = [Counter(), *(pieces_of(text, n) for n in range(1, longest + 1))]
        self.contexts = [Counter() for _ in range(longest)]  # by length: how often one occurred
        self.followers = [Counter() for _ in range(longest)]  # and how many different ones followed
        for table in self.counts:
            for piece, times in table.items():
                self.contexts[len(piece) - 1][piece[:-1]] += times
                self.followers[len(piece) - 1][piece[:-1]] += 1

    def counted(self, piece: str, add: float = 0.01) -> float:
        """Return the probability of a piece's last character in the table of its context.

        Formula: (count(hc) + add) / (count(h) + add * vocab_size), for a character c after h.
        """
        n = len(piece)
        total = self.contexts[n - 1][piece[:-1]] + add * self.vocab_size
        return (self.counts[n][piece] + add) / total

    def mixed(self, piece: str) -> float:
        """Return the probability of a piece's last character, all of its contexts mixed.

        Formula: P_n(c | h) = (count(hc) + T(h) P_{n-1}(c | h')) / (count(h) + T(h)), where h' is h
        without its first character and T(h) counts the different characters that followed h.

        Source: Witten and Bell, "The Zero-Frequency Problem" (1991), method C.
        """
        probability = 1 / self.vocab_size
        for n in range(1, len(piece) + 1):
            part = piece[-n:]  # h and c
            T, times = self.followers[n - 1][part[:-1]], self.contexts[n - 1][part[:-1]]
            if times:
                probability = (self.counts[n][part] + T * probability) / (times + T)
        return probability

    def share_new(self, text: str, n: int) -> float:
        """Return the share of contexts of `n` characters, in another text, that never occurred."""
        pieces = pieces_of(text, n)
        new = sum(times for context, times in pieces.items() if context not in self.contexts[n])
        return new / pieces.total()


def bits(probability: Callable[[str], float], text: str, n: int) -> float:
    """Return the bits per character that a text costs, predicted from n - 1 characters before."""
    pieces = pieces_of(text, n)
    cost = -sum(times * math.log2(probability(piece)) for piece, times in pieces.items())
    return cost / pieces.total()
