"""Token ids to vectors: the table that is looked up, its scale, and the positions added to it."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.norm import make_norm
from transformer_lesson.model.positions import (
    LearnedPositions,
    SinusoidalHalves,
    SinusoidalPositions,
)


def embed(
    ids: Int[Tensor, "*batch n"], table: Float[Tensor, "vocab_size d_model"]
) -> Float[Tensor, "*batch n d_model"]:
    """Look token vectors up and scale them by sqrt(d_model).

    Args:
        ids: token ids.
        table: one row of d_model numbers per token.

    Source: "Attention Is All You Need" (2017), section 3.4.
    """
    return table[ids] * math.sqrt(table.size(-1))


class InputEmbedding(nn.Module):
    """Token vectors plus positions (and what kind of segment a token is in), then dropout.

    Padding takes up no positions: in a sentence padded on the left, the first real token still
    stands at position 0.

    Source: "Attention Is All You Need" (2017), sections 3.4, 3.5 and 5.4.
    Differs: BERT adds token types and ends with a norm; GPT-2 and BERT do not scale.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.randn(config.vocab_size, config.d_model))
        scaled_to_1 = config.d_model**-0.5  # so that scaled vectors have std 1
        nn.init.normal_(self.weight, std=scaled_to_1 if config.scale_embedding else 0.02)
        kinds = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}
        kinds["sinusoidal_halves"] = SinusoidalHalves
        kind = kinds.get(config.positions)  # rotary positions act inside attention instead
        self.positions = kind(config.max_len, config.d_model) if kind else None
        n_types = config.n_token_types  # as many rows as types, looked up like positions
        self.token_types = LearnedPositions(n_types, config.d_model) if n_types else None
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.tokens, self.output = HookPoint(), HookPoint()

    def forward(
        self,
        ids: Int[Tensor, "batch n"],
        start: int = 0,
        token_types: Int[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch new d_model"]:
        """Return the vectors that enter the first block, of the tokens from start on.

        Args:
            ids: all tokens so far.
            start: how many of them the model has read before (with a cache), and skips.
            token_types: which segment each token is in, from 0; all 0 if left out.
        """
        self._check(ids, start)
        new = ids[:, start:]
        scaled = self.config.scale_embedding
        x = self.tokens(embed(new, self.weight) if scaled else self.weight[new])  # (batch, new, d)
        if self.token_types is not None or token_types is not None:
            x = x + self._segment_vectors(new, start, token_types)
        if self.positions is not None:
            x = x + self.positions(self._position_of_each(ids)[..., start:])
        return self.output(self.dropout(self.norm(x)))

    def _segment_vectors(self, new: Tensor, start: int, token_types: Tensor | None) -> Tensor:
        n_types = self.config.n_token_types
        types = torch.zeros_like(new) if token_types is None else token_types[:, start:]
        if types.shape != new.shape or int(types.min()) < 0 or int(types.max()) >= n_types:
            raise ValueError(
                f"token_types has shape {tuple(types.shape)} and values up to {int(types.max())}, "
                f"but it must be {tuple(new.shape)} with values under n_token_types = {n_types}."
            )
        return self.token_types(types)  # (batch, new, d_model)

    def _position_of_each(self, ids: Tensor) -> Tensor:
        if self.config.pad_id is None:
            return torch.arange(ids.size(1), device=ids.device)  # (n,)
        real = ids != self.config.pad_id
        return (real.cumsum(dim=1) - 1).clamp(min=0)  # (batch, n)

    def _check(self, ids: Tensor, start: int) -> None:
        size, longest = self.config.vocab_size, self.config.max_len
        if ids.dim() != 2 or ids.numel() == 0 or ids.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"ids have shape {tuple(ids.shape)} and dtype {ids.dtype}, but they must be "
                "int64 (or int32) of shape (batch, n) with n >= 1; for one sentence use ids[None]."
            )
        if ids.size(1) > longest:
            raise ValueError(
                f"the sequence has {ids.size(1)} tokens, but max_len is {longest}: shorten it "
                "or build the model with a larger max_len."
            )
        new = ids[:, start:]
        low, high = int(new.min()), int(new.max())
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise ValueError(
                f"token id {wrong} is outside the vocabulary of {size} tokens (0 to {size - 1})."
            )
