"""GPT's forward pass in functions of its weights: no module, no class, every step a formula.

`forward` does the same for the paper's translator. Little differs: one stack instead of two, no
cross-attention, a causal mask for every block, pre-norm, and a last norm before the projection.
"""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.blocks import residual_branch_pre
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.forward import PAPER_CHOICES, BlockWeights, weights_of_block
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import DecoderOnlyTransformer


class GPTWeights(NamedTuple):
    """All weights of a decoder-only model, as matrices that multiply from the right.

    Args:
        table: one row of d_model numbers per token.
        blocks: one entry per block; none has cross-attention.
        last_norm: gamma and beta of the norm after the last block.
        projection: from vectors to logits, shape (d_model, vocab_size).
        n_heads: heads of every attention.
    """

    table: Tensor
    blocks: tuple[BlockWeights, ...]
    last_norm: tuple[Tensor, Tensor]
    projection: Tensor
    n_heads: int

    def __repr__(self) -> str:
        words, d_model = self.table.shape
        return (
            f"GPTWeights({len(self.blocks)} blocks, d_model {d_model}, n_heads {self.n_heads}, "
            f"{words} tokens)"
        )


GPT_CHOICES = PAPER_CHOICES | {"norm_position": "pre", "pad_id": None}
"""What `gpt_forward` computes: the paper's choices, but pre-norm and without padding."""


def gpt_weights_of(model: DecoderOnlyTransformer) -> GPTWeights:
    """Return a model's weights: the same numbers in memory, so that training one trains the other.

    Raises:
        ValueError: the model makes a choice that `gpt_forward` does not know, such as dropout.
    """
    _check_is_gpt(model.config)
    return GPTWeights(
        model.embedding.weight,
        tuple(map(weights_of_block, model.decoder)),
        (model.decoder_norm.weight, model.decoder_norm.bias),
        model.projection.weight.T,
        model.config.n_heads,
    )


def _check_is_gpt(config: ModelConfig) -> None:
    for name, wanted in GPT_CHOICES.items():
        if getattr(config, name) != wanted:
            raise ValueError(
                f"{name} is {getattr(config, name)!r}, but `gpt_forward` knows only {wanted!r}: "
                f"build the model with {name}={wanted!r}."
            )


def gpt_forward(
    ids: Int[Tensor, "batch n"], weights: GPTWeights
) -> Float[Tensor, "batch n vocab_size"]:
    """Return, at each position, logits for the token that comes next.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section
        2.3, for the norms; "Attention Is All You Need" (2017) for everything else.
    """
    mask = causal_mask(ids.size(1)).to(ids.device)  # (1, 1, n, n)
    x = embed(ids, weights.table)  # (batch, n, d_model)
    x = x + sinusoidal_encoding(x.size(1), x.size(2)).to(x)
    for block in weights.blocks:
        x = _gpt_layer(x, block, weights.n_heads, mask)
    return layer_norm(x, *weights.last_norm, 1e-5) @ weights.projection  # (batch, n, vocab_size)


def _gpt_layer(x: Tensor, block: BlockWeights, n_heads: int, mask: Tensor) -> Tensor:
    x = residual_branch_pre(
        x,
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, mask),
        lambda h: layer_norm(h, *block.norms[0], 1e-5),
    )
    return residual_branch_pre(
        x,
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *block.norms[1], 1e-5),
    )
