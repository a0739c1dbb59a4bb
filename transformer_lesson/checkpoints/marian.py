"""Marian (opus-mt): the original architecture, post-norm, with sines and cosines.

Source: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018);
Tiedemann and Thottingal, "OPUS-MT" (2020).
"""

import re
from dataclasses import replace

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    filled,
    needed,
    our_activation,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.positions import SinusoidalPositions
from transformer_lesson.model.transformers import EncoderDecoderTransformer


class SinusoidalHalves(SinusoidalPositions):
    """The same numbers in another order: first all sines, then all cosines."""

    def __init__(self, max_len: int, d_model: int):
        super().__init__(max_len, d_model)
        self.table = torch.cat([self.table[:, ::2], self.table[:, 1::2]], dim=-1)


class MarianTransformer(EncoderDecoderTransformer):
    """The encoder-decoder model with Marian's order of sines and cosines, and a bias per token."""

    def __init__(
        self,
        source_config: ModelConfig,
        target_config: ModelConfig | None = None,
        share_embeddings: bool = False,
    ):
        super().__init__(source_config, target_config, share_embeddings)
        for embedding in (self.source_embedding, self.target_embedding):
            c = embedding.config
            embedding.positions = SinusoidalHalves(c.max_len, c.d_model)
        self.projection.bias = nn.Parameter(torch.zeros(self.config.vocab_size))


FROM_STREAM = re.compile(r"(embedding|projection|W_[QKV1])\.weight$")
"""Matrices whose rows are vectors of the stream or are multiplied by them."""
TO_STREAM = re.compile(r"(W_[O2]|norm_\d)\.(weight|bias)$")
"""What produces the stream's numbers, along the first axis."""


def as_marian(model: EncoderDecoderTransformer) -> MarianTransformer:
    """Return the Marian that computes the same as the paper's model.

    Nothing in a Transformer depends on the order of a vector's d_model numbers, as long as all
    weights agree on it. So sines and cosines, which alternate here, move into Marian's two halves,
    and every weight's rows or columns with them. Biases that the paper's attention lacks are 0.

    The decoder has no padding, as in `MarianFamily.read_config`: pads at the end of a target are
    not hidden, but change nothing before them.
    """
    source = replace(model.source_config, bias=True)
    target = replace(model.config, bias=True, pad_id=None)
    shared = model.source_embedding.weight is model.target_embedding.weight
    d_model = source.d_model
    order = torch.tensor([*range(0, d_model, 2), *range(1, d_model, 2)])  # sines, then cosines
    weights = {name: _reordered(name, w, order) for name, w in model.named_parameters()}
    return filled(MarianTransformer(source, target, share_embeddings=shared), weights)


def _reordered(name: str, weight: Tensor, order: Tensor) -> Tensor:
    if FROM_STREAM.search(name):
        return weight[:, order]
    return weight[order] if TO_STREAM.search(name) else weight


RULES = (
    (r"^source_embedding\.weight$", "model.encoder.embed_tokens.weight"),
    (r"^target_embedding\.weight$", "model.decoder.embed_tokens.weight"),
    (r"^projection\.weight", "lm_head.weight"),
    (r"^projection\.bias", "final_logits_bias"),
    (r"^(encoder|decoder)\.", r"model.\1.layers."),
    (r"self_attention", "self_attn"),
    (r"cross_attention", "encoder_attn"),
    (r"W_O", "out_proj"),
    (r"W_Q", "q_proj"),
    (r"W_K", "k_proj"),
    (r"W_V", "v_proj"),
    (r"feed_forward\.W_", "fc"),
    (r"norm_1", "self_attn_layer_norm"),
    (r"(\.encoder\..*)norm_2", r"\1final_layer_norm"),
    (r"norm_2", "encoder_attn_layer_norm"),
    (r"norm_3", "final_layer_norm"),
)
LAYERS = (
    ("encoder.{i}.self_attention", "model.encoder.layers.{i}.self_attn"),
    ("encoder.{i}.after_attention", "model.encoder.layers.{i}.self_attn_layer_norm"),
    ("encoder.{i}", "model.encoder.layers.{i}"),
    ("decoder.{i}.self_attention", "model.decoder.layers.{i}.self_attn"),
    ("decoder.{i}.cross_attention", "model.decoder.layers.{i}.encoder_attn"),
    ("decoder.{i}", "model.decoder.layers.{i}"),
)
SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
SHARED, BIAS = "model.shared.weight", "final_logits_bias"


def is_shared(facts: Facts) -> bool:
    """Whether one matrix serves as both embeddings; the library unties all of them together."""
    tied = facts.get("tie_word_embeddings", True)
    return tied and facts.get("share_encoder_decoder_embeddings", True)


class MarianFamily(Family):
    """Marian's checkpoints."""

    name, model_type, architecture = "Marian", "marian", "MarianMTModel"
    model, prefix, rules, layers = MarianTransformer, "model.", RULES, LAYERS

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our configs, of the encoder and of the decoder.

        The decoder begins with the padding token, as `decoder_start_token_id` says. So it treats no
        token as padding; pads at the end of a target are not hidden, but change nothing before
        them.
        """
        require(
            facts, normalize_before=False, normalize_embedding=False, add_final_layer_norm=False
        )
        require(facts, static_position_embeddings=True, is_decoder=False)
        names = ("attention_heads", "layers", "ffn_dim")
        vocab_size, d_model, max_len, *sizes = needed(
            facts,
            *("vocab_size", "d_model", "max_position_embeddings"),
            *(f"{side}_{name}" for side in ("encoder", "decoder") for name in names),
        )
        target_size = facts.get("decoder_vocab_size") or vocab_size
        if is_shared(facts):
            require(facts | {"decoder_vocab_size": target_size}, decoder_vocab_size=vocab_size)
        begin = facts.get("decoder_start_token_id", facts.get("pad_token_id"))
        source = ModelConfig(
            vocab_size,
            d_model,
            *sizes[:3],
            max_len=max_len,
            dropout=facts.get("dropout", 0.1),
            attention_dropout=facts.get("attention_dropout", 0.0),
            feed_forward_dropout=facts.get("activation_dropout", 0.0),
            norm_position="post",
            activation=our_activation(facts, "activation_function", "gelu"),
            tie_embeddings=facts.get("tie_word_embeddings", True),
            pad_id=facts.get("pad_token_id"),
            scale_embedding=facts.get("scale_embedding", False),
            **text_ids(facts | {"vocab_size": target_size, "bos_token_id": begin}, eos=0),
        )
        heads, layers, width = sizes[3:]
        target = replace(
            source,
            vocab_size=target_size,
            n_heads=heads,
            n_layers=layers,
            d_ff=width,
            pad_id=None,
        )
        return source, target

    def build(self, configs: tuple[ModelConfig, ...], facts: Facts, tensors: Tensors) -> nn.Module:
        """Return our model; one matrix serves as both embeddings if the checkpoint says so."""
        return MarianTransformer(*configs, share_embeddings=is_shared(facts))

    def converted(self, model: nn.Module) -> nn.Module:
        """Return the model, or the Marian that computes the same."""
        return model if isinstance(model, MarianTransformer) else as_marian(model)

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        source, target = model.source_config, model.config
        sides = {"encoder": source, "decoder": target}
        facts = {f"{side}_attention_heads": c.n_heads for side, c in sides.items()}
        facts |= {f"{side}_layers": c.n_layers for side, c in sides.items()}
        facts |= {f"{side}_ffn_dim": c.d_ff for side, c in sides.items()}
        return facts | {
            "vocab_size": source.vocab_size,
            "decoder_vocab_size": target.vocab_size,
            "d_model": source.d_model,
            "max_position_embeddings": source.max_len,
            "activation_function": THEIR_ACTIVATIONS.get(source.activation),
            "dropout": source.dropout,
            "attention_dropout": source.attention_dropout,
            "activation_dropout": source.feed_forward_dropout,
            "scale_embedding": source.scale_embedding,
            "tie_word_embeddings": target.tie_embeddings,
            "share_encoder_decoder_embeddings": (
                model.source_embedding.weight is model.target_embedding.weight
            ),
            "is_encoder_decoder": True,
            **their_ids(target),
            "pad_token_id": source.pad_id,
            "decoder_start_token_id": target.bos_id,
            "bos_token_id": None,
            "forced_eos_token_id": None,
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Check the stored positions, use the shared matrix if it is needed, add a missing bias.

        Raises:
            ValueError: positions other than the formula's.
        """
        tensors = dict(tensors)
        for side in ("encoder", "decoder"):
            name = f"model.{side}.embed_positions.weight"
            if name in tensors:
                stored = tensors.pop(name).float()
                formula = SinusoidalHalves(*stored.shape).table
                if not torch.allclose(stored, formula, atol=1e-3):
                    raise ValueError(f"{name} is not made of the formula's sines and cosines.")
        if SHARED in tensors and not is_shared(facts):  # then the library does not use it
            shared = tensors.pop(SHARED)
            for name in (SOURCE, TARGET):
                tensors.setdefault(name, shared)
        size = facts.get("decoder_vocab_size") or facts["vocab_size"]
        tensors.setdefault(BIAS, torch.zeros(1, size))
        return tensors

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = ("lm_head.weight",) if model.config.tie_embeddings else ()
        if model.source_embedding.weight is model.target_embedding.weight:
            return {SOURCE: (SHARED, TARGET, *tied)}
        return {TARGET: tied}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Give the bias its leading 1."""
        return {name: w[None] if name == BIAS else w for name, w in weights.items()}

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        return {name: t[0] if name == BIAS else t for name, t in tensors.items()}
