"""Token ids to vectors: the table that is looked up, its scale, and the positions added to it."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.positions import LearnedPositions, SinusoidalPositions


def embed(
    ids: Int[Tensor, "*batch n"], table: Float[Tensor, "vocab_size d_model"]
) -> Float[Tensor, "*batch n d_model"]:
    """Look up token vectors and scale them by sqrt(d_model).

    Args:
        ids: token ids.
        table: one row of d_model numbers per token.

    Source: "Attention Is All You Need" (2017), section 3.4.
    """
    return table[ids] * math.sqrt(table.size(-1))


class InputEmbedding(nn.Module):
    """Token vectors plus positions, then dropout.

    Padding takes up no positions: in a sentence padded on the left, the first real token is still
    at position 0.

    Source: "Attention Is All You Need" (2017), sections 3.4, 3.5 and 5.4.
    Differs: GPT-2 and BERT do not scale.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.randn(config.vocab_size, config.d_model))
        unit_std = config.d_model**-0.5  # so that scaled vectors have std 1
        nn.init.normal_(self.weight, std=unit_std if config.scale_embedding else 0.02)
        kinds = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}
        kind = kinds.get(config.positions)  # others act inside attention instead
        self.positions = kind(config.max_len, config.d_model) if kind else None
        self.dropout = nn.Dropout(config.dropout)
        self.tokens, self.output = HookPoint(), HookPoint()

    def forward(
        self, ids: Int[Tensor, "batch n"], start: int = 0
    ) -> Float[Tensor, "batch new d_model"]:
        """Return the first block's input for the tokens from start on.

        Args:
            ids: all tokens so far.
            start: how many of them the model has already read (with a cache) and skips.

        Raises:
            ValueError: ids outside the vocabulary, or more of them than max_len.
        """
        return self.output(self.dropout(self.placed(ids, start)))

    def placed(self, ids: Int[Tensor, "batch n"], start: int) -> Float[Tensor, "batch new d_model"]:
        """Return token vectors plus positions, before dropout."""
        check_ids(ids, start, self.config)
        new = ids[:, start:]
        scaled = self.config.scale_embedding
        x = self.tokens(embed(new, self.weight) if scaled else self.weight[new])  # (batch, new, d)
        if self.positions is None:
            return x
        return x + self.positions(self._position_of_each(ids)[..., start:])

    def _position_of_each(self, ids: Tensor) -> Tensor:
        if self.config.pad_id is None:
            return torch.arange(ids.size(1), device=ids.device)  # (n,)
        real = ids != self.config.pad_id
        return (real.cumsum(dim=1) - 1).clamp(min=0)  # (batch, n)


def check_ids(ids: Tensor, start: int, config: ModelConfig) -> None:
    """Refuse what a model cannot read.

    On a GPU, looking at an id means waiting for all queued work. So there an id outside the
    vocabulary stops the program later, with PyTorch's own message. A compiled model checks shapes
    only.

    Args:
        ids: all tokens so far; shape and dtype are checked.
        start: the first whose value is checked; those before it were checked when they were read.
        config: the model's.

    Raises:
        ValueError: ids of another shape or dtype, too many of them, or one outside the vocabulary.
    """
    if ids.dim() != 2 or ids.numel() == 0 or ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"ids have shape {tuple(ids.shape)} and dtype {ids.dtype}, but they must be "
            "int64 (or int32) of shape (batch, n) with n >= 1; for one sentence use ids[None]."
        )
    if ids.size(1) > config.max_len:
        raise ValueError(
            f"the sequence has {ids.size(1)} tokens, but max_len is {config.max_len}: shorten it "
            "or build the model with a larger max_len."
        )
    n = config.vocab_size
    new = ids[:, start:]
    check_range(new, n, f"token id {{}} is outside the vocabulary of {n} tokens (0 to {n - 1}).")


def check_range(values: Tensor, n: int, refusal: str) -> None:
    """Refuse values outside 0 to n - 1, without waiting for a GPU; see `check_ids`.

    Args:
        values: integers.
        n: how many values are valid.
        refusal: the message, with {} for the first wrong value.
    """
    if torch.compiler.is_compiling():
        return
    outside = (values < 0) | (values >= n)
    if not values.is_cpu:
        torch._assert_async(~outside.any(), refusal)
    elif outside.any():
        raise ValueError(refusal.format(int(values[outside][0])))
