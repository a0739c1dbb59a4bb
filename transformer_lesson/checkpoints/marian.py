"""Marian (opus-mt): the original architecture, post-norm, with sines and cosines.

Source: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018);
Tiedemann and Thottingal, "OPUS-MT" (2020).
"""

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    our_activation,
    require,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.positions import SinusoidalHalves
from transformer_lesson.model.transformers import EncoderDecoderTransformer

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


def read_config(facts: Facts) -> tuple[ModelConfig, ...]:
    """Return our configs, of the encoder and of the decoder.

    The decoder begins with the padding token, as `decoder_start_token_id` says. So it takes no
    token for padding; what is padded at the end of a target sees nothing but moves nothing.
    """
    require(facts, normalize_before=False, normalize_embedding=False, add_final_layer_norm=False)
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
        positions="sinusoidal_halves",
        tie_embeddings=facts.get("tie_word_embeddings", True),
        pad_id=facts.get("pad_token_id"),
        scale_embedding=facts.get("scale_embedding", False),
        output_bias=True,
    )
    heads, layers, width = sizes[3:]
    target = replace(
        source, vocab_size=target_size, n_heads=heads, n_layers=layers, d_ff=width, pad_id=None
    )
    return source, target


def build(configs: tuple[ModelConfig, ...], facts: Facts, names: Iterable[str]) -> nn.Module:
    """Return our model; one matrix serves as both embeddings if the checkpoint says so."""
    return EncoderDecoderTransformer(*configs, share_embeddings=is_shared(facts))


def write_config(model: nn.Module) -> dict:
    """Return config.json of one of our models."""
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
        "pad_token_id": source.pad_id,
        "decoder_start_token_id": source.pad_id or 0,
        "bos_token_id": None,
        "eos_token_id": None,
        "forced_eos_token_id": None,
    }


def tidy(facts: Facts, tensors: Tensors) -> Tensors:
    """Check the stored positions, take the shared matrix where it is meant, add a missing bias.

    Raises:
        ValueError: positions that are not the formula's.
    """
    tensors = dict(tensors)
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        if name in tensors:
            stored = tensors.pop(name).float()
            formula = SinusoidalHalves.make_table(*stored.shape)
            if not torch.allclose(stored, formula, atol=1e-3):
                raise ValueError(f"{name} is not made of the formula's sines and cosines.")
    if SHARED in tensors and not is_shared(facts):  # then the library does not use it
        shared = tensors.pop(SHARED)
        for name in (SOURCE, TARGET):
            tensors.setdefault(name, shared)
    size = facts.get("decoder_vocab_size") or facts["vocab_size"]
    tensors.setdefault(BIAS, torch.zeros(1, size))
    return tensors


def aliases(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Return which names stand for one matrix."""
    tied = ("lm_head.weight",) if model.config.tie_embeddings else ()
    if model.source_embedding.weight is model.target_embedding.weight:
        return {SOURCE: (SHARED, TARGET, *tied)}
    return {TARGET: tied}


def pack(weights: Tensors) -> Tensors:
    """Give the bias its leading 1."""
    return {name: w[None] if name == BIAS else w for name, w in weights.items()}


def unpack(tensors: Tensors) -> Tensors:
    """Undo `pack`."""
    return {name: t[0] if name == BIAS else t for name, t in tensors.items()}


MARIAN = Family(
    name="Marian",
    model_type="marian",
    architecture="MarianMTModel",
    prefix="model.",
    rules=RULES,
    read_config=read_config,
    build=build,
    write_config=write_config,
    layers=LAYERS,
    tidy=tidy,
    aliases=aliases,
    pack=pack,
    unpack=unpack,
)
