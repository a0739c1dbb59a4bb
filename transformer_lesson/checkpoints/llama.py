"""Llama: today's decoder-only model, with RMSNorm, rotary positions, SwiGLU, grouped heads.

Source: Touvron et al., "LLaMA" (2023), section 2.2; "Llama 2" (2023) for grouped queries.
"""

from torch import nn

from transformer_lesson.checkpoints.family import (
    Facts,
    Family,
    Tensors,
    needed,
    padding_of,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.model.config import ModelConfig, positive
from transformer_lesson.model.transformers import DecoderOnlyTransformer

RULES = (
    (r"^embedding\.weight$", "model.embed_tokens.weight"),
    (r"^decoder_norm", "model.norm"),
    (r"^projection", "lm_head"),
    (r"^decoder\.", "model.layers."),
    (r"self_attention\.W_O", "self_attn.o_proj"),
    (r"self_attention\.W_Q", "self_attn.q_proj"),
    (r"self_attention\.W_K", "self_attn.k_proj"),
    (r"self_attention\.W_V", "self_attn.v_proj"),
    (r"feed_forward\.W_(\w+)", r"mlp.\1_proj"),
    (r"norm_1", "input_layernorm"),
    (r"norm_2", "post_attention_layernorm"),
)
LAYERS = (
    ("embedding", "model.embed_tokens"),
    ("decoder.{i}.self_attention", "model.layers.{i}.self_attn"),
    ("decoder.{i}.feed_forward", "model.layers.{i}.mlp"),
    ("decoder.{i}", "model.layers.{i}"),
    ("decoder_norm", "model.norm"),
)


def rotary_base(facts: Facts) -> float:
    """Return the base of the rotary positions.

    Raises:
        ValueError: positions that are stretched, or turn only part of each head; or not a number.
    """
    rope = dict(facts.get("rope_parameters") or {})
    older = facts.get("rope_scaling") or {}
    scaling = older or rope
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        field = "rope_scaling" if older else "rope_parameters"
        raise ValueError(
            f"{field} has rope_type {kind!r}, but our rotary positions are 'default': this "
            "checkpoint would compute something else."
        )
    require(facts, partial_rotary_factor=1.0)
    require(rope, partial_rotary_factor=1.0)
    theta = rope.get("rope_theta", facts.get("rope_theta", 10000.0))
    positive.check("rope_theta", theta)
    return float(theta)


class LlamaFamily(Family):
    """Llama's checkpoints."""

    name, model_type, architecture = "Llama", "llama", "LlamaForCausalLM"
    model, prefix, rules, layers = DecoderOnlyTransformer, "model.", RULES, LAYERS

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a Llama one."""
        sizes = needed(
            facts,
            "vocab_size",
            "hidden_size",
            "num_attention_heads",
            "num_hidden_layers",
            "intermediate_size",
            "max_position_embeddings",
        )
        vocab_size, d_model, n_heads, n_layers, d_ff, max_len = sizes
        require(facts, mlp_bias=False, sliding_window=None)
        if facts.get("hidden_act", "silu") != "swish":
            require(facts, hidden_act="silu")
        if facts.get("head_dim") is not None:
            require(facts, head_dim=d_model // n_heads)
        config = ModelConfig(
            vocab_size,
            d_model,
            n_heads,
            n_layers,
            d_ff,
            max_len,
            dropout=0.0,
            attention_dropout=facts.get("attention_dropout") or 0.0,
            activation="swiglu",
            positions="rotary",
            tie_embeddings=facts.get("tie_word_embeddings", False),
            pad_id=padding_of(facts),
            **text_ids(facts, bos=1, eos=2),
            bias=facts.get("attention_bias", False),
            norm="rms",
            norm_epsilon=facts.get("rms_norm_eps", 1e-6),
            n_kv_heads=facts.get("num_key_value_heads") or n_heads,
            rotary_base=rotary_base(facts),
            scale_embedding=False,
        )
        return (config,)

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        c = model.config
        return {
            "vocab_size": c.vocab_size,
            "hidden_size": c.d_model,
            "num_attention_heads": c.n_heads,
            "num_key_value_heads": c.n_kv_heads or c.n_heads,
            "num_hidden_layers": c.n_layers,
            "intermediate_size": c.d_ff,
            "max_position_embeddings": c.max_len,
            "hidden_act": "silu",
            "attention_bias": c.bias,
            "attention_dropout": c.attention_dropout,
            "rms_norm_eps": c.norm_epsilon,
            "rope_parameters": {"rope_type": "default", "rope_theta": c.rotary_base},
            "tie_word_embeddings": c.tie_embeddings,
            **their_ids(c),
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out the tables of angles that old files hold."""
        return {name: tensor for name, tensor in tensors.items() if "rotary_emb" not in name}

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.config.tie_embeddings
        return {"model.embed_tokens.weight": ("lm_head.weight",)} if tied else {}
