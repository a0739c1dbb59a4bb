"""The paper's forward pass in functions of its weights: no module, no class, every step a formula.

`transformers` holds the same model as modules, with the choices that came later. This is the paper
itself, put together from the functions of `embedding`, `positions`, `masks`, `attention`, `norm`,
`feed_forward` and `blocks`, as a learner writes them.
"""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.attention import cross_attention, multi_head_attention
from transformer_lesson.model.blocks import decoder_block, encoder_block
from transformer_lesson.model.config import LATER, ModelConfig
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import EncoderDecoderTransformer


class BlockWeights(NamedTuple):
    """The weights of one block, in the order in which the functions take them.

    Args:
        self_attention: W_Q, W_K, W_V and W_O, each of shape (d_model, d_model).
        cross_attention: the same, in a decoder's block.
        feed_forward: W_1, b_1, W_2 and b_2.
        norms: gamma and beta of each sub-layer's norm.
    """

    self_attention: tuple[Tensor, ...]
    cross_attention: tuple[Tensor, ...]
    feed_forward: tuple[Tensor, ...]
    norms: tuple[tuple[Tensor, Tensor], ...]


class Weights(NamedTuple):
    """All weights of the paper's model, as matrices that multiply from the right.

    Args:
        source_table, target_table: one row of d_model numbers per token.
        encoder, decoder: one entry per block.
        projection: from vectors to logits, shape (d_model, vocab_size).
        n_heads: heads of every attention.
        pad_id: the id of the source's padding.
    """

    source_table: Tensor
    target_table: Tensor
    encoder: tuple[BlockWeights, ...]
    decoder: tuple[BlockWeights, ...]
    projection: Tensor
    n_heads: int
    pad_id: int

    def __repr__(self) -> str:
        words, d_model = self.source_table.shape
        return (
            f"Weights({len(self.encoder)} + {len(self.decoder)} blocks, d_model {d_model}, "
            f"n_heads {self.n_heads}, {words} + {len(self.target_table)} words, "
            f"pad_id {self.pad_id})"
        )


def weights_of(model: EncoderDecoderTransformer) -> Weights:
    """Return a model's weights: the same numbers in memory, so that training one trains the other.

    Raises:
        ValueError: the model makes a choice that the functions do not know, such as dropout, or its
            encoder and decoder have different numbers of heads.
    """
    for config in (model.source_config, model.config):
        _check_choices(config)
    if model.source_config.n_heads != model.config.n_heads:
        raise ValueError(
            f"the encoder has {model.source_config.n_heads} heads and the decoder "
            f"{model.config.n_heads}, but these functions take one number: build both with it."
        )
    return Weights(
        model.source_embedding.weight,
        model.target_embedding.weight,
        tuple(map(weights_of_block, model.encoder)),
        tuple(map(weights_of_block, model.decoder)),
        model.projection.weight.T,
        model.config.n_heads,
        model.source_config.pad_id,
    )


PAPER_CHOICES = {
    "norm_position": "post",
    "bias": False,
    "positions": "sinusoidal",
    "activation": "relu",
    "norm": "layer",
    "norm_epsilon": 1e-5,
    "scale_embedding": True,
    "n_kv_heads": None,
    "attention_window": None,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "feed_forward_dropout": 0.0,
} | LATER
"""What the functions compute; dropout is in none of the paper's formulas."""


def _check_choices(config: ModelConfig) -> None:
    for name, wanted in PAPER_CHOICES.items():
        if getattr(config, name) != wanted:
            raise ValueError(
                f"{name} is {getattr(config, name)!r}, but these functions know only {wanted!r}: "
                f"build the model with {name}={wanted!r}."
            )
    if config.pad_id is None:
        raise ValueError("pad_id is None, but these functions hide padding: give it an id.")


def weights_of_block(block: nn.Module) -> BlockWeights:
    """Return the weights of one block of a model, of any of the three kinds."""
    attentions = [
        tuple(getattr(part, name).weight.T for name in ("W_Q", "W_K", "W_V", "W_O"))
        if (part := getattr(block, kind, None))
        else ()
        for kind in ("self_attention", "cross_attention")
    ]
    norms = [getattr(block, name, None) for name in ("norm_1", "norm_2", "norm_3")]
    W_1, W_2 = block.feed_forward.W_1, block.feed_forward.W_2
    return BlockWeights(
        *attentions,
        (W_1.weight.T, W_1.bias, W_2.weight.T, W_2.bias),
        tuple((norm.weight, norm.bias) for norm in norms if norm),
    )


def encoder_forward(
    source_ids: Int[Tensor, "batch source"], weights: Weights
) -> Float[Tensor, "batch source d_model"]:
    """Return the memory: one vector per source token. Padding is on the right.

    Source: "Attention Is All You Need" (2017), figure 1, left.
    """
    mask = padding_mask(source_ids, weights.pad_id)  # (batch, 1, 1, source)
    x = embed(source_ids, weights.source_table)  # (batch, source, d_model)
    x = x + sinusoidal_encoding(x.size(1), x.size(2)).to(x)
    for block in weights.encoder:
        x = _encoder_layer(x, block, weights.n_heads, mask)
    return x


def _encoder_layer(x: Tensor, block: BlockWeights, n_heads: int, mask: Tensor) -> Tensor:
    return encoder_block(
        x,
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, mask),
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *block.norms[0], 1e-5),
        lambda h: layer_norm(h, *block.norms[1], 1e-5),
    )


def decoder_forward(
    target_ids: Int[Tensor, "batch target"],
    memory: Float[Tensor, "batch source d_model"],
    source_ids: Int[Tensor, "batch source"],
    weights: Weights,
) -> Float[Tensor, "batch target vocab_size"]:
    """Return, at each target position, logits for the target token that comes next.

    Padding of the target is on the right, where the causal mask hides it.

    Args:
        target_ids: the target so far.
        memory: the source's, from `encoder_forward`.
        source_ids: show which of the memory's tokens are padding.
        weights: of the whole model.

    Source: "Attention Is All You Need" (2017), figure 1, right.
    """
    causal = causal_mask(target_ids.size(1)).to(target_ids.device)
    masks = causal, padding_mask(source_ids, weights.pad_id)
    y = embed(target_ids, weights.target_table)  # (batch, target, d_model)
    y = y + sinusoidal_encoding(y.size(1), y.size(2)).to(y)
    for block in weights.decoder:
        y = _decoder_layer(y, memory, block, weights.n_heads, masks)
    return y @ weights.projection  # (batch, target, vocab_size)


def _decoder_layer(
    y: Tensor, memory: Tensor, block: BlockWeights, n_heads: int, masks: tuple[Tensor, Tensor]
) -> Tensor:
    causal, real = masks
    return decoder_block(
        y,
        memory,
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, causal),
        lambda h, memory: cross_attention(h, memory, *block.cross_attention, n_heads, real),
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *block.norms[0], 1e-5),
        lambda h: layer_norm(h, *block.norms[1], 1e-5),
        lambda h: layer_norm(h, *block.norms[2], 1e-5),
    )
