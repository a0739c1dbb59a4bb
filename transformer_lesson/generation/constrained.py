"""Decoding into a form: only tokens after which the text can still become a record are allowed.

Short because the form is. Libraries compile any grammar or JSON schema into such a function.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor


def legal_next(written: str, tokens: Sequence[str]) -> Bool[Tensor, " token"]:
    """Return which tokens may come next in a record such as {"word": "Kind", "gender": "n"}.

    The word is one letter or more, the gender m, f or n. A token may be several characters long,
    and may end one part of the record and begin the next.

    Args:
        written: the beginning of a record, perhaps empty or whole.
        tokens: each a text of at least one character.

    Returns:
        `True` where `written + token` is still the beginning of a record, or a whole one.
    """
    start = '{"word": "'
    legal = []
    for token in tokens:
        text = written + token
        word = text[len(start) :].split('"')[0] or "a"  # not begun: any letter stands for it
        records = [f'{start}{word}", "gender": "{gender}"}}' for gender in "mfn"]
        legal.append(word.isalpha() and any(record.startswith(text) for record in records))
    return torch.tensor(legal)
