"""GPT-2: a decoder-only model, pre-norm, learned positions, no scaling of the embedding.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.3.
"""

import math
import re
from dataclasses import replace

import torch
from torch import nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    filled,
    needed,
    our_activation,
    padding_of,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

RULES = (
    (r"^embedding\.weight$", "transformer.wte.weight"),
    (r"^embedding\.positions", "transformer.wpe"),
    (r"^decoder_norm", "transformer.ln_f"),
    (r"^projection", "lm_head"),
    (r"^decoder\.", "transformer.h."),
    (r"self_attention\.W_O", "attn.c_proj"),
    (r"self_attention\.W_([QKV])", r"attn.\1"),
    (r"feed_forward\.W_1", "mlp.c_fc"),
    (r"feed_forward\.W_2", "mlp.c_proj"),
    (r"norm_", "ln_"),
)
LAYERS = (
    ("embedding", "transformer.drop"),
    ("decoder.{i}.self_attention", "transformer.h.{i}.attn"),
    ("decoder.{i}.feed_forward", "transformer.h.{i}.mlp"),
    ("decoder.{i}", "transformer.h.{i}"),
    ("decoder_norm", "transformer.ln_f"),
)
TURNED = re.compile(r"\.(attn|mlp)\.c_\w+\.weight$")
"""GPT-2 stores these matrices as in the formula, x W; `nn.Linear` stores the transpose."""


def as_gpt2(model: DecoderOnlyTransformer) -> DecoderOnlyTransformer:
    """Return the model with GPT-2's choices that computes the same.

    The formula's sines and cosines become rows of the table in which GPT-2 learns its positions,
    a scale of the embeddings is multiplied into their table, and biases that an attention lacks
    are 0. A matrix that was both embedding and projection becomes two if it was scaled, because
    only the embedding is scaled.
    """
    c = model.config
    tied = c.tie_embeddings and not c.scale_embedding
    choices = {"positions": "learned", "scale_embedding": False, "bias": True}
    if (config := replace(c, tie_embeddings=tied, **choices)) == c:
        return model
    weights = dict(model.named_parameters()) | {"projection.weight": model.projection.weight}
    if c.scale_embedding:
        weights["embedding.weight"] = model.embedding.weight * math.sqrt(c.d_model)
    if c.positions == "sinusoidal":
        weights["embedding.positions.weight"] = model.embedding.positions.table
    return filled(DecoderOnlyTransformer(config), weights)


class GPT2Family(Family):
    """GPT-2's checkpoints."""

    name, model_type, architecture = "GPT-2", "gpt2", "GPT2LMHeadModel"
    model, prefix, rules, layers = DecoderOnlyTransformer, "transformer.", RULES, LAYERS

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a GPT-2 one."""
        require(
            facts,
            scale_attn_weights=True,
            scale_attn_by_inverse_layer_idx=False,
            add_cross_attention=False,
        )
        sizes = needed(facts, "vocab_size", "n_embd", "n_head", "n_layer", "n_positions")
        vocab_size, d_model, n_heads, n_layers, max_len = sizes
        config = ModelConfig(
            vocab_size,
            d_model,
            n_heads,
            n_layers,
            d_ff=facts.get("n_inner") or 4 * d_model,
            max_len=max_len,
            dropout=facts.get("resid_pdrop", 0.1),
            attention_dropout=facts.get("attn_pdrop", 0.1),
            activation=our_activation(facts, "activation_function", "gelu_new"),
            positions="learned",
            tie_embeddings=facts.get("tie_word_embeddings", True),
            pad_id=padding_of(facts),
            **text_ids(facts, bos=50256, eos=50256),
            norm_epsilon=facts.get("layer_norm_epsilon", 1e-5),
            scale_embedding=False,
        )
        return (config,)

    def converted(self, model: nn.Module) -> nn.Module:
        """Return a model with GPT-2's choices."""
        return as_gpt2(model)

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        c = model.config
        return {
            "vocab_size": c.vocab_size,
            "n_embd": c.d_model,
            "n_head": c.n_heads,
            "n_layer": c.n_layers,
            "n_inner": c.d_ff,
            "n_positions": c.max_len,
            "activation_function": THEIR_ACTIVATIONS.get(c.activation),
            "resid_pdrop": c.dropout,
            "embd_pdrop": c.dropout,
            "attn_pdrop": c.attention_dropout,
            "layer_norm_epsilon": c.norm_epsilon,
            "tie_word_embeddings": c.tie_embeddings,
            **their_ids(c),
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out the causal masks that old files hold with the weights."""
        mask = re.compile(r"\.attn\.(bias|masked_bias)$")
        return {name: tensor for name, tensor in tensors.items() if not mask.search(name)}

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.config.tie_embeddings
        return {"transformer.wte.weight": ("lm_head.weight",)} if tied else {}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Put queries, keys and values side by side in one matrix, and transpose all four."""
        packed = {}
        for name, weight in weights.items():
            if ".attn.Q." in name:
                parts = [weights[name.replace(".Q.", f".{part}.")] for part in "QKV"]
                packed[name.replace(".Q.", ".c_attn.")] = torch.cat(parts)
            elif ".attn.K." not in name and ".attn.V." not in name:
                packed[name] = weight
        return {name: w.T if TURNED.search(name) else w for name, w in packed.items()}

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        weights = {}
        for name, tensor in tensors.items():
            weight = tensor.T if TURNED.search(name) else tensor
            if ".c_attn." in name:
                for part, third in zip("QKV", weight.chunk(3), strict=True):
                    weights[name.replace(".c_attn.", f".{part}.")] = third
            else:
                weights[name] = weight
        return weights


OPT_RULES = (
    (r"^embedding\.weight$", "model.decoder.embed_tokens.weight"),
    (r"^embedding\.positions", "model.decoder.embed_positions"),
    (r"^decoder_norm", "model.decoder.final_layer_norm"),
    (r"^projection", "lm_head"),
    (r"^decoder\.", "model.decoder.layers."),
    (r"self_attention\.W_O", "self_attn.out_proj"),
    (r"self_attention\.W_Q", "self_attn.q_proj"),
    (r"self_attention\.W_K", "self_attn.k_proj"),
    (r"self_attention\.W_V", "self_attn.v_proj"),
    (r"feed_forward\.W_1", "fc1"),
    (r"feed_forward\.W_2", "fc2"),
    (r"norm_1", "self_attn_layer_norm"),
    (r"norm_2", "final_layer_norm"),
)
OPT_LAYERS = (
    ("decoder.{i}.self_attention", "model.decoder.layers.{i}.self_attn"),
    ("decoder.{i}", "model.decoder.layers.{i}"),
    ("decoder_norm", "model.decoder.final_layer_norm"),
)
FIRST_POSITION = 2
"""OPT's table of positions begins with rows that no token has."""


class OPTFamily(GPT2Family):
    """OPT's checkpoints: a GPT-2 with ReLU, under other names. It is written as a GPT-2.

    Source: Zhang et al., "OPT" (2022), section 2.1.
    """

    name, model_type, architecture = "OPT", "opt", "OPTForCausalLM"
    prefix, rules, layers = "model.", OPT_RULES, OPT_LAYERS
    pack, unpack = Family.pack, Family.unpack

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for an OPT one."""
        require(
            facts,
            do_layer_norm_before=True,
            _remove_final_layer_norm=False,
            enable_bias=True,
            layer_norm_elementwise_affine=True,
        )
        names = "vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "ffn_dim"
        sizes = needed(facts, *names, "max_position_embeddings")
        if facts.get("word_embed_proj_dim") is not None:
            require(facts, word_embed_proj_dim=facts["hidden_size"])
        facts = {"pad_token_id": 1} | dict(facts)
        config = ModelConfig(
            *sizes,
            dropout=facts.get("dropout", 0.1),
            attention_dropout=facts.get("attention_dropout", 0.0),
            activation=our_activation(facts, "activation_function", "relu"),
            positions="learned",
            tie_embeddings=facts.get("tie_word_embeddings", True),
            pad_id=padding_of(facts),
            **text_ids(facts, bos=2, eos=2),
            scale_embedding=False,
        )
        return (config,)

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out positions that no token has."""
        name = "model.decoder.embed_positions.weight"
        return dict(tensors) | ({name: tensors[name][FIRST_POSITION:]} if name in tensors else {})

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.config.tie_embeddings
        return {"model.decoder.embed_tokens.weight": ("lm_head.weight",)} if tied else {}
