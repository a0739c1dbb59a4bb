"""A model at work on a batch: it reads ids and gives logits for the token that comes next."""

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.files import printable
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import size
from transformer_lesson.model.embedding import check_ids
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.text.batches import pad_batch

Row = Tensor | np.ndarray | Sequence[SupportsIndex]
Ids = Row | Sequence[Row]


def sentences_of(ids: Ids, pad_id: int | None) -> list[list[int]]:
    """Return one list of ids per sentence, without padding.

    Args:
        ids: a tensor (batch, n), padded on either side or not at all; a list of lists; or one
            sentence, as a list or a tensor (n,). A NumPy array serves as a tensor does.
        pad_id: what to leave out.

    Raises:
        ValueError: no sentence, one without tokens, or anything but ids.
    """
    try:
        rows = [_in_python(row) for row in _in_python(ids)]
        if rows and isinstance(rows[0], int):
            rows = [rows]
        sentences = [[operator.index(i) for i in row] for row in rows]
    except TypeError:
        raise ValueError(
            f"generate: ids are {printable(repr(ids), 60)}, but must be whole numbers, one list "
            "for each sentence, as tokenizer.encode(text) gives them."
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


def _in_python(ids: Any) -> Any:
    """Return a tensor's or a NumPy array's numbers as Python's, and anything else as it is."""
    return ids.tolist() if isinstance(ids, Tensor | np.ndarray | np.generic) else ids


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


def check_length(n: int, max_new_tokens: int, max_len: int) -> int:
    """Return max_new_tokens in Python's type.

    Raises:
        ValueError: it is not a number above 0, or n tokens and the new ones exceed max_len.
    """
    max_new_tokens = size.check("max_new_tokens", max_new_tokens)
    if n + max_new_tokens > max_len:
        raise ValueError(
            f"generate: {n} tokens to start from and max_new_tokens = {max_new_tokens} are more "
            f"than the model's max_len of {max_len}: ask for at most {max(max_len - n, 0)} new "
            "tokens, or start from fewer."
        )
    return max_new_tokens


def one_of(tokens: Tensor, ids: tuple[int, ...]) -> Tensor:
    """Return for each token whether it is one of these ids, of which there is at least one."""
    matches = tokens == ids[0]
    for id_ in ids[1:]:
        matches |= tokens == id_
    return matches


class NaNLogits(ValueError):
    """A model's logits are NaN, so no token is likelier than another."""


def require_no_nan(logits: Tensor, model: nn.Module) -> None:
    """Raise `NaNLogits`, with a weight that is not finite, if any of a model's logits is NaN."""
    if not logits.isnan().any():
        return
    spoiled = [name for name, w in model.named_parameters() if not w.isfinite().all()]
    if spoiled:
        raise NaNLogits(
            f"generate: the model's logits are NaN, because {spoiled[0]} holds NaN or an infinity "
            f"({len(spoiled)} of its matrices and vectors do): load the model again, or train it "
            "again with a lower learning_rate."
        )
    raise NaNLogits(
        "generate: the model's logits are NaN, though all of its weights are finite: look for the "
        "layer whose output is NaN first, or for numbers too large for its dtype."
    )


class DecodingSession:
    """Gives the next token's logits for every row, from either kind of model.

    `ids` holds what the rows begin with: the prompts, or a `<bos>` for each source;
    `max_new_tokens` is Python's int.

    Args:
        model: a decoder-only or an encoder-decoder model, in evaluation mode.
        prompt_or_source: see `sentences_of`.
        max_new_tokens: most tokens to write.
        use_cache: keep keys and values, or compute them again for every token.
        bos_id: what a translation begins with; other models need none.

    Raises:
        ValueError: a model that predicts no next token, a text that would exceed the model's
            max_len, or sentences of different lengths without a padding token.
    """

    def __init__(
        self,
        model: nn.Module,
        prompt_or_source: Ids,
        max_new_tokens: int,
        use_cache: bool,
        bos_id: int | None,
    ):
        translates = isinstance(model, EncoderDecoderTransformer)
        if not translates and not isinstance(model, DecoderOnlyTransformer):
            raise ValueError(
                f"generate: a {type(model).__name__} does not predict the next token: use a "
                "DecoderOnlyTransformer or an EncoderDecoderTransformer."
            )
        if translates and bos_id is None:
            raise ValueError(
                "generate: the model's config has no bos_id: say which id a translation "
                "begins with, as in bos_id=0."
            )
        self.model = model
        device, pad_id = next(model.parameters()).device, model.config.pad_id
        source_pad = model.source_config.pad_id if translates else pad_id
        ids = left_padded(sentences_of(prompt_or_source, source_pad), source_pad)
        n = 1 if translates else ids.size(1)
        self.max_new_tokens = check_length(n, max_new_tokens, model.config.max_len)
        check_ids(ids, 0, model.source_config if translates else model.config)
        ids = ids.to(device)
        self.ids = ids.new_full((len(ids), n), bos_id) if translates else ids
        self.source_ids = ids if translates else None
        self.memory = model.encode(ids) if translates else None
        longest = self.ids.size(1) + self.max_new_tokens
        self.cache = KeyValueCache(longest) if use_cache else None
        self.added = torch.zeros(model.config.vocab_size, device=device)
        # A text never holds <pad>. Marian's targets begin with it, and it has no other.
        never = source_pad if pad_id is None and bos_id == source_pad else pad_id
        if never is not None:
            self.added[never : never + 1] = -math.inf

    def next_logits(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch vocab_size"]:
        """Return logits for the token after ids, in float32; that of `<pad>` is -inf.

        Args:
            ids: everything so far; with a cache only what is new is read.

        Raises:
            NaNLogits: one of them is NaN.
        """
        new = ids if self.cache is None else ids[:, self.cache.length :]
        last_only = not self.model.logits.watched  # who watches the logits gets all of them
        logits = self._read(new, last_only)[:, -1]  # (batch, vocab_size)
        require_no_nan(logits, self.model)
        return logits + self.added

    def distributions(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch new vocab_size"]:
        """Return the probabilities from which each token after the start was chosen.

        One pass over the finished ids gives those of every step: no token sees what comes later.
        """
        first = self.ids.size(1) - 1
        return (self._read(ids[:, :-1])[:, first:] + self.added).softmax(dim=-1)

    def _read(self, new: Tensor, last_only: bool = False) -> Tensor:
        how = {"cache": self.cache, "last_only": last_only}
        if self.memory is None:
            return self.model(new, **how)  # (batch, new, vocab_size)
        return self.model.decode(new, self.memory, self.source_ids, **how)

    def select(self, rows: Int64[Tensor, " rows"]) -> None:
        """Let row i go on from row rows[i]; rows may be repeated."""
        if self.cache is not None:
            self.cache.reorder(rows)
        if self.memory is not None:
            self.memory, self.source_ids = self.memory[rows], self.source_ids[rows]
