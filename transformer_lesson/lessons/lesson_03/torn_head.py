"""The head that is built by hand, for words with their places."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.text.grammar.lexicon import NOUNS, VERBS

PROPERTIES = ("article", "noun", "verb", "feminine", "neuter")
VERB_FORMS = {form for verb in VERBS.values() for form in (verb.english, verb.english_s)}


def word_vectors(words: Sequence[str]) -> Float[Tensor, "n 7"]:
    """Return a vector for each word: the five `PROPERTIES`, then the tip of a clock hand.

    The hand at place i points to (sin i, cos i).

    Args:
        words: English words of the grammar, nouns in the singular; others have no properties.
    """
    x = torch.zeros(len(words), len(PROPERTIES))
    for row, word in zip(x, words, strict=True):
        noun = NOUNS.get(word)
        genders = [noun is not None and noun.article == article for article in ("die", "das")]
        known = [word == "the", noun is not None, word in VERB_FORMS, *genders]
        row[:] = torch.tensor(known).float()
    return torch.cat([x, sinusoidal_encoding(len(words), 2)], dim=1)


def one_step() -> Float[Tensor, "2 2"]:
    """Return R, which turns the hand by one step: code(i) @ R is code(i + 1)."""
    sine, cosine = sinusoidal_encoding(2, 2)[1]
    return torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])


def own_noun(
    R: Float[Tensor, "2 2"],
) -> tuple[Float[Tensor, "7 d_k"], Float[Tensor, "7 d_k"]]:
    """Return W_Q and W_K of a head in which each article finds its own noun.

    An article asks for a noun, and every word for two places on: of the nouns, the one nearest to
    there wins.

    Args:
        R: code(i) @ R is code(i + 1).
    """
    W_Q, W_K = torch.zeros(2, len(PROPERTIES) + 2, 3)
    W_Q[0, 0] = 40.0  # an article asks for a noun
    W_K[1, 0] = 1.0
    W_Q[5:, 1:] = 20.0 * R @ R  # and for two places on
    W_K[5:, 1:] = torch.eye(2)
    return W_Q, W_K
