"""Heads whose matrices are written by hand, not trained: what attention can do, shown by doing it.

A word's vector has a number for each fact about it, and one for each place where it may be.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.text.grammar.lexicon import NOUNS, VERBS

FACTS = ("article", "noun", "verb", "masculine", "feminine", "neuter")
ARTICLES = ("der", "die", "das")  # of a masculine, a feminine, a neuter noun
VERB_FORMS = {form for verb in VERBS.values() for form in (verb.english, verb.english_s)}


def word_vectors(words: Sequence[str], n_places: int) -> Float[Tensor, "n d_model"]:
    """Return a vector for each word of a sentence: six facts about it, and its place.

    Args:
        words: English words of the grammar, nouns in the singular; others have no known facts.
        n_places: how many words a sentence may have.

    Returns:
        Zeros and ones, shape (n, 6 + n_places): the facts in the order of `FACTS`, then place 0,
        place 1 and so on.

    Raises:
        ValueError: more words than places.
    """
    if len(words) > n_places:
        raise ValueError(f"{len(words)} words do not fit in {n_places} places: add places.")
    x = torch.zeros(len(words), len(FACTS) + n_places)
    for place, word in enumerate(words):
        noun = NOUNS.get(word)
        genders = [noun is not None and noun.article == article for article in ARTICLES]
        facts = [word == "the", noun is not None, word in VERB_FORMS, *genders]
        x[place, : len(FACTS)] = torch.tensor(facts).float()
        x[place, len(FACTS) + place] = 1.0
    return x


def gender_head(
    n_places: int,
) -> tuple[
    Float[Tensor, "d_model d_k"], Float[Tensor, "d_model d_k"], Float[Tensor, "d_model gender"]
]:
    """Return W_Q, W_K and W_V of a head that fetches the gender of the nearest noun ahead.

    A word at place i asks for nouns, and for place j ahead the more the nearer it is; for places
    behind it, and its own, not at all.

    Args:
        n_places: as for `word_vectors`; from 2 to 20.
    """
    W_Q, W_K = torch.zeros(2, 6 + n_places, 1 + n_places)
    i, j = torch.arange(n_places)[:, None], torch.arange(n_places)
    W_Q[6:, 0] = 400.0  # a noun, above all
    W_Q[6:, 1:] = torch.where(j > i, -20.0 * (j - i), -900.0)  # near rather than far
    W_K[1, 0] = 1.0  # a noun is found by column 0,
    W_K[6:, 1:] = torch.eye(n_places)  # place j by column 1 + j
    return W_Q, W_K, torch.eye(6 + n_places)[:, 3:6]


def role_head(
    n_places: int,
) -> tuple[
    Float[Tensor, "d_model d_k"], Float[Tensor, "d_model d_k"], Float[Tensor, "d_model role"]
]:
    """Return W_Q, W_K and W_V of a head that tells each word whether a verb comes right before it.

    In our sentences that makes the noun after an article an object. The first word has nothing
    before it: it looks at itself, and none of our sentences begins with a verb.

    Args:
        n_places: as for `word_vectors`; 2 or more.
    """
    W_Q, W_K = torch.zeros(2, 6 + n_places, n_places)
    W_Q[7:, :-1] = 50 * torch.eye(n_places - 1)  # place i asks for place i - 1,
    W_Q[6, 0] = 50.0  # place 0 for itself
    W_K[6:] = torch.eye(n_places)  # place j is found by column j
    W_V = torch.zeros(6 + n_places, 1)
    W_V[2] = 1.0  # a verb hands over 1
    return W_Q, W_K, W_V
