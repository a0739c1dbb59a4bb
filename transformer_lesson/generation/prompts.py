"""What a caller gives to `generate`, as one batch: sentences of any length, padded or not."""

import operator
from collections.abc import Sequence

from jaxtyping import Int64
from torch import Tensor

from transformer_lesson.corpora.batching import pad_batch

Ids = Tensor | Sequence[int] | Sequence[Sequence[int]] | Sequence[Tensor]


def sentences_of(ids: Ids, pad_id: int | None) -> list[list[int]]:
    """Return one list of ids per sentence, without padding.

    Args:
        ids: a tensor (batch, n), padded on either side or not at all; a list of lists; or one
            sentence, as a list or a tensor (n,).
        pad_id: what to leave out.

    Raises:
        ValueError: no sentence, one without tokens, or something else than ids.
    """
    rows = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    if rows and isinstance(rows[0], int):
        rows = [rows]
    try:
        sentences = [[operator.index(i) for i in row] for row in rows]
    except TypeError:
        raise ValueError(
            "generate: ids must be whole numbers, one list for each sentence, as "
            "tokenizer.encode(text) gives them."
        ) from None
    sentences = [[i for i in sentence if i != pad_id] for sentence in sentences]
    if not sentences:
        raise ValueError("generate: there is no sentence: pass at least one.")
    for number, sentence in enumerate(sentences):
        if not sentence:
            raise ValueError(
                f"generate: sentence {number} has no tokens: start it with one, such as <bos>."
            )
    return sentences


def left_padded(sentences: list[list[int]], pad_id: int | None) -> Int64[Tensor, "batch n"]:
    """Return one row per sentence, so that all end at the right edge, where writing goes on.

    Raises:
        ValueError: the sentences differ in length and there is no padding token.
    """
    lengths = sorted({len(sentence) for sentence in sentences})
    if pad_id is None and len(lengths) > 1:
        raise ValueError(
            f"generate: sentences of {lengths[0]} to {lengths[-1]} tokens need padding, but the "
            "model's pad_id is None: pass sentences of one length, one sentence at a time, or "
            "build the model with a pad_id."
        )
    return pad_batch(sentences, 0 if pad_id is None else pad_id, side="left")


def check_length(n: int, max_new_tokens: int, max_len: int) -> None:
    """Raise a `ValueError` if n tokens and the new ones do not fit into a model."""
    if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens is {max_new_tokens!r}, but it must be an int >= 1.")
    if n + max_new_tokens > max_len:
        raise ValueError(
            f"generate: {n} tokens to start from and max_new_tokens = {max_new_tokens} are more "
            f"than the model's max_len of {max_len}: ask for at most {max(max_len - n, 0)} new "
            "tokens, or start from fewer."
        )
