"""A model at work on a batch: it reads ids and gives logits for the token that comes next."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.cache import KeyValueCache
from transformer_lesson.generation.prompts import Ids, check_length, left_padded, sentences_of
from transformer_lesson.models import DecoderOnlyTransformer, EncoderDecoderTransformer


class Writer:
    """Gives the next token's logits for every row, from either kind of model.

    `ids` holds what the rows begin with: the prompts, or a `<bos>` for each source.

    Args:
        model: a decoder-only or an encoder-decoder model, in evaluation mode.
        prompt_or_source: see `sentences_of`.
        max_new_tokens: most tokens to write.
        use_cache: keep keys and values, or compute them again for every token.
        bos_id: what a translation begins with.

    Raises:
        ValueError: a model that predicts no next token, a text that gets longer than the model's
            max_len, or sentences of different lengths without a padding token.
    """

    def __init__(
        self,
        model: nn.Module,
        prompt_or_source: Ids,
        max_new_tokens: int,
        use_cache: bool,
        bos_id: int,
    ):
        translates = isinstance(model, EncoderDecoderTransformer)
        if not translates and not isinstance(model, DecoderOnlyTransformer):
            raise ValueError(
                f"generate: a {type(model).__name__} does not predict the next token: use a "
                "DecoderOnlyTransformer or an EncoderDecoderTransformer."
            )
        self.model = model
        device, pad_id = model.projection.weight.device, model.config.pad_id
        source_pad = model.source_config.pad_id if translates else pad_id
        given = left_padded(sentences_of(prompt_or_source, source_pad), source_pad).to(device)
        self.ids = given.new_full((len(given), 1), bos_id) if translates else given
        check_length(self.ids.size(1), max_new_tokens, model.config.max_len)
        self.source_ids = given if translates else None
        self.memory = model.encode(given) if translates else None
        self.cache = KeyValueCache(self.ids.size(1) + max_new_tokens) if use_cache else None
        self.added = torch.zeros(model.config.vocab_size, device=device)
        if pad_id is not None:
            self.added[pad_id] = -math.inf  # <pad> is no token that a text can hold

    def next_logits(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch vocab_size"]:
        """Return logits for the token after ids, in float32; that of `<pad>` is -inf.

        Args:
            ids: everything so far; with a cache only what is new is read.
        """
        new = ids if self.cache is None else ids[:, self.cache.length :]
        return self._read(new)[:, -1] + self.added

    def distributions(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch new vocab_size"]:
        """Return the probabilities from which each token after the start was chosen.

        One pass over the finished ids gives those of every step: no token sees what comes later.
        """
        first = self.ids.size(1) - 1
        return (self._read(ids[:, :-1])[:, first:] + self.added).softmax(dim=-1)

    def _read(self, new: Tensor) -> Tensor:
        if self.memory is None:
            return self.model(new, cache=self.cache)  # (batch, new, vocab_size)
        return self.model.decode(new, self.memory, self.source_ids, cache=self.cache)

    def select(self, rows: Int64[Tensor, " rows"]) -> None:
        """Let row i go on from what row rows[i] was; rows may be repeated."""
        if self.cache is not None:
            self.cache.reorder(rows)
        if self.memory is not None:
            self.memory, self.source_ids = self.memory[rows], self.source_ids[rows]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, and every part of it back as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
