"""T5: an encoder-decoder with relative positions, RMSNorm before each sub-layer, and no biases.

Its first version multiplies the decoder's last vectors by 1 / sqrt(d_model), because its table is
embedding and projection at once. Our model has that number in the gamma of its last norm.

Source: Raffel et al., "Exploring the Limits of Transfer Learning" (2020), section 2.1; Shazeer,
"GLU Variants Improve Transformer" (2020), for version 1.1.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from transformer_lesson.checkpoints.family import (
    OUR_ACTIVATIONS,
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    text_ids,
    their_ids,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderDecoderTransformer

RULES = (
    (r"^source_embedding\.weight$", "shared.weight"),
    (r"^(encoder|decoder)_norm", r"\1.final_layer_norm"),
    (r"^projection", "lm_head"),
    (r"^(encoder|decoder)\.(\d+)", r"\1.block.\2"),
    (r"self_attention\.relative", "layer.0.SelfAttention.relative_attention_bias"),
    *((rf"self_attention\.W_{W}", f"layer.0.SelfAttention.{W.lower()}") for W in "QKVO"),
    *((rf"cross_attention\.W_{W}", f"layer.1.EncDecAttention.{W.lower()}") for W in "QKVO"),
    (r"^(encoder\..*)feed_forward\.", r"\1layer.1.DenseReluDense."),
    (r"^(decoder\..*)feed_forward\.", r"\1layer.2.DenseReluDense."),
    (r"Dense\.W_(2|down)", "Dense.wo"),
    (r"Dense\.W_1", "Dense.wi"),
    (r"Dense\.W_gate", "Dense.wi_0"),
    (r"Dense\.W_up", "Dense.wi_1"),
    *((rf"norm_{n + 1}", f"layer.{n}.layer_norm") for n in range(3)),
)
LAYERS = (
    ("encoder.{i}.self_attention", "encoder.block.{i}.layer.0.SelfAttention"),
    ("encoder.{i}.feed_forward", "encoder.block.{i}.layer.1.DenseReluDense"),
    ("encoder.{i}", "encoder.block.{i}"),
    ("decoder.{i}.self_attention", "decoder.block.{i}.layer.0.SelfAttention"),
    ("decoder.{i}.cross_attention", "decoder.block.{i}.layer.1.EncDecAttention"),
    ("decoder.{i}.feed_forward", "decoder.block.{i}.layer.2.DenseReluDense"),
    ("decoder.{i}", "decoder.block.{i}"),
)
SIZES = "vocab_size", "d_model", "num_heads", "num_layers", "d_ff"
GATED = {"gelu": "geglu", "gelu_new": "geglu", "silu": "swiglu", "swish": "swiglu"}
PROJECTIONS = THEIR_ACTIVATIONS | {"geglu": "gated-gelu", "swiglu": "gated-silu"}
TABLE, HEAD, LAST_NORM = "shared.weight", "lm_head.weight", "decoder.final_layer_norm.weight"
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""Old files have it, from a time when cross-attention had relative positions, too."""


class T5Family(Family):
    """T5's checkpoints, of both versions."""

    name, model_type, architecture = "T5", "t5", "T5ForConditionalGeneration"
    model, prefix, rules, layers = EncoderDecoderTransformer, "", RULES, LAYERS
    defaults: Facts = {"feed_forward_proj": "relu", "tie_word_embeddings": True}

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our configs, of the encoder and of the decoder.

        The decoder begins with the padding token and treats no token as padding, as in Marian.
        """
        facts = {"pad_token_id": 0} | self.defaults | dict(facts)
        vocab_size, d_model, n_heads, n_layers, d_ff = needed(facts, *SIZES)
        dropout, begin = facts.get("dropout_rate", 0.1), facts["pad_token_id"]
        begin = facts.get("decoder_start_token_id", begin)
        d_head = facts.get("d_kv", 64)
        source = ModelConfig(
            vocab_size,
            d_model,
            n_heads,
            n_layers,
            d_ff,
            max_len=facts.get("n_positions") or 512,
            dropout=dropout,
            attention_dropout=dropout,
            feed_forward_dropout=dropout,
            activation=_activation(facts["feed_forward_proj"]),
            positions="relative",
            tie_embeddings=self.is_scaled(facts),
            pad_id=facts["pad_token_id"],
            bias=False,
            feed_forward_bias=False,
            norm="rms",
            norm_epsilon=facts.get("layer_norm_epsilon", 1e-6),
            scale_embedding=False,
            head_size=d_head,
            query_scale=1.0,
            relative_buckets=facts.get("relative_attention_num_buckets", 32),
            relative_distance=facts.get("relative_attention_max_distance", 128),
            **text_ids(facts | {"bos_token_id": begin}, eos=1),
        )
        decoder_layers = facts.get("num_decoder_layers") or n_layers
        return source, replace(source, n_layers=decoder_layers, pad_id=None)

    def build(self, configs: tuple[ModelConfig, ...], facts: Facts, tensors: Tensors) -> nn.Module:
        """Return our model; its projection has its own matrix if the file has one."""
        tied = self.is_tied(facts, tensors)
        return self.model(*(replace(c, tie_embeddings=tied) for c in configs), True)

    def write_config(self, model: nn.Module) -> dict[str, Any]:
        """Return config.json for one of our models."""
        source, target = model.source_config, model.config
        return {
            "vocab_size": source.vocab_size,
            "d_model": source.d_model,
            "d_kv": source.d_head,
            "d_ff": source.d_ff,
            "num_heads": source.n_heads,
            "num_layers": source.n_layers,
            "num_decoder_layers": target.n_layers,
            "n_positions": source.max_len,
            "dropout_rate": source.dropout,
            "feed_forward_proj": PROJECTIONS[source.activation],
            "layer_norm_epsilon": source.norm_epsilon,
            "relative_attention_num_buckets": source.relative_buckets,
            "relative_attention_max_distance": source.relative_distance,
            "tie_word_embeddings": target.tie_embeddings,
            "is_encoder_decoder": True,
            **their_ids(target),
            "pad_token_id": source.pad_id,
            "decoder_start_token_id": target.bos_id,
            "bos_token_id": None,
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out what has no effect, and scale the last norm if `unpack` will scale it back."""
        tensors = {name: tensor for name, tensor in tensors.items() if name != UNUSED}
        unscaled = self.is_tied(facts, tensors) and not self.is_scaled(facts)
        if unscaled and LAST_NORM in tensors:
            tensors[LAST_NORM] = tensors[LAST_NORM].double() * math.sqrt(facts["d_model"])
        return tensors

    def is_scaled(self, facts: Facts) -> bool:
        """Whether the library scales the decoder's last vectors; one of two fields says so."""
        facts = self.defaults | dict(facts)
        return facts.get("scale_decoder_outputs", facts["tie_word_embeddings"])

    def is_tied(self, facts: Facts, tensors: Tensors) -> bool:
        """Whether embedding and projection are one matrix."""
        head, table = tensors.get(HEAD), tensors.get(TABLE)
        if self.is_scaled(facts) or head is None or table is None:
            return True
        if head.shape != table.shape or head.is_meta:  # without numbers
            return False
        return torch.equal(head, table)

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = (HEAD,) if model.config.tie_embeddings else ()
        return {TABLE: ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", *tied)}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Take the scale of logits out of the last norm, if the table is tied."""
        gamma = weights[LAST_NORM]
        scale = math.sqrt(config.d_model) if config.tie_embeddings else 1.0
        return weights | {LAST_NORM: (gamma.double() * scale).to(gamma.dtype)}

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        scale = math.sqrt(config.d_model) if config.tie_embeddings else 1.0
        return tensors | {LAST_NORM: tensors[LAST_NORM].double() / scale}


class MT5Family(T5Family):
    """The checkpoints of mT5: T5 1.1 for 101 languages.

    Source: Xue et al., "mT5" (2021).
    """

    name, model_type, architecture = "mT5", "mt5", "MT5ForConditionalGeneration"
    defaults: Facts = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

    def is_scaled(self, facts: Facts) -> bool:
        """No: the library's newer files of mT5 say that the table is tied, and scale nothing."""
        return False


def _activation(projection: Any) -> str:
    """Return our name of feed_forward_proj.

    Raises:
        ValueError: an activation that our networks do not have.
    """
    known = dict(OUR_ACTIVATIONS) | {f"gated-{their}": our for their, our in GATED.items()}
    if not isinstance(projection, str) or projection not in known:
        raise ValueError(
            f"feed_forward_proj is {projection!r}, but our feed-forward networks have only "
            f"{', '.join(known)}."
        )
    return known[projection]
