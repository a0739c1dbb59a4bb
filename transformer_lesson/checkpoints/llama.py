"""Llama and its relatives: today's decoder-only models, one row of `RELATIVES` for each family.

All have RMSNorm, rotary positions, a gated network and shared key heads. What else a family has are
fields of `ModelConfig`: a row says which of them are always so, which fields of config.json it
reads, and what these mean if a file leaves them out.

Source: Touvron et al., "LLaMA" (2023), section 2.2; "Llama 2" (2023) for grouped queries; for the
relatives, the library's configuration_*.py and modeling_*.py of each.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from transformer_lesson.checkpoints.family import (
    OUR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    padding_of,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.checkpoints.rotations import (
    FULL,
    LOCAL,
    few,
    real,
    rope_parameters,
    rotation,
)
from transformer_lesson.model.config import ModelConfig, size
from transformer_lesson.model.transformers import DecoderOnlyTransformer

NORMS = {
    "pre": (
        ("norm_1", "input_layernorm", "attn_norm"),
        ("norm_2", "post_attention_layernorm", "ffn_norm"),
    ),
    "output": (
        ("norm_1", "post_attention_layernorm", "post_attention_norm"),
        ("norm_2", "post_feedforward_layernorm", "post_ffw_norm"),
    ),
    "both": (
        ("norm_1.0", "input_layernorm", "attn_norm"),
        ("norm_1.1", "post_attention_layernorm", "post_attention_norm"),
        ("norm_2.0", "pre_feedforward_layernorm", "ffn_norm"),
        ("norm_2.1", "post_feedforward_layernorm", "post_ffw_norm"),
    ),
}
"""For each norm_position, our name of a block's norm, the library's and llama.cpp's."""
RULES = (
    (r"^embedding\.weight$", "model.embed_tokens.weight"),
    (r"^decoder_norm", "model.norm"),
    (r"^projection", "lm_head"),
    (r"^decoder\.", "model.layers."),
    (r"self_attention\.W_O", "self_attn.o_proj"),
    (r"self_attention\.W_QKV", "self_attn.qkv_proj"),
    (r"self_attention\.W_Q", "self_attn.q_proj"),
    (r"self_attention\.W_K", "self_attn.k_proj"),
    (r"self_attention\.W_V", "self_attn.v_proj"),
    (r"self_attention\.norm_Q", "self_attn.q_norm"),
    (r"self_attention\.norm_K", "self_attn.k_norm"),
    (r"feed_forward\.W_(\w+)", r"mlp.\1_proj"),
)
LAYERS = (
    ("embedding", "model.embed_tokens"),
    ("decoder.{i}.self_attention", "model.layers.{i}.self_attn"),
    ("decoder.{i}.feed_forward", "model.layers.{i}.mlp"),
    ("decoder.{i}", "model.layers.{i}"),
    ("decoder_norm", "model.norm"),
)
SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_len",
}
"""Fields that config.json must have, to ours."""
CAPS = {"attn_logit_softcapping": "score_cap", "final_logit_softcapping": "logit_cap"}
DEFAULTS = {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
"""What a missing field means, unless a family says otherwise."""
SWITCHES = dict.fromkeys(
    ("sliding_window", "layer_types", "no_rope_layers", "query_pre_attn_scalar", *CAPS)
)
SWITCHES |= {"attention_bias": False, "partial_rotary_factor": 1.0}
"""Fields that only some families read; in the others they must have this value."""
FUSED = {
    "q_proj": (("q_proj", "k_proj", "v_proj"), "qkv_proj"),
    "gate_proj": (("gate_proj", "up_proj"), "gate_up_proj"),
}
FIRST = re.compile(r"(?<=\.)(q_proj|gate_proj)(?=\.)")
OTHERS = re.compile(r"\.(k_proj|v_proj|up_proj)\.")
"""Matrices that Phi-3 stores on top of each other, by the first; the first, and the others."""
GATES = {"swish": "swiglu", "gelu_tanh": "geglu"}
THEIR_GATES = {"swiglu": "silu", "geglu": "gelu_pytorch_tanh"}


@dataclass(frozen=True)
class LlamaFamily(Family):
    """The checkpoints of Llama, or of one of its relatives.

    Args:
        name, model_type, architecture: see `Family`.
        ours: our fields that all models of the family share.
        reads: which of `SWITCHES` it reads.
        defaults: what missing fields mean, where that is not `DEFAULTS`.
        activation: the field that names the gate's activation.
        plus_one: gammas are stored minus 1.
        fused: queries, keys and values are stored as one matrix, and so are gate and up.
    """

    name: str = "Llama"
    model_type: str = "llama"
    architecture: str = "LlamaForCausalLM"
    ours: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ("attention_bias",)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    activation: str = "hidden_act"
    plus_one: bool = False
    fused: bool = False
    model, prefix, layers = DecoderOnlyTransformer, "model.", LAYERS

    @property
    def norms(self) -> tuple[tuple[str, str, str], ...]:
        """A block's norms by our name, the library's and llama.cpp's."""
        return NORMS[self.ours.get("norm_position", "pre")]

    @property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Pairs (pattern, replacement) that turn our parameter's name into theirs, in order."""
        norms = (
            (rf"\.{ours.replace('.', '[.]')}\.", f".{theirs}.") for ours, theirs, _ in self.norms
        )
        return (*RULES, *norms)

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for one of the library's."""
        facts = DEFAULTS | dict(self.defaults) | dict(facts)
        sizes = dict(zip(SIZES.values(), needed(facts, *SIZES), strict=True))
        unread = {name: value for name, value in SWITCHES.items() if name not in self.reads}
        require(facts, mlp_bias=False, **unread)
        if facts.get("use_bidirectional_attention"):
            require(facts, use_bidirectional_attention=False)
        head_size = facts.get("head_dim")
        if head_size == sizes["d_model"] / sizes["n_heads"]:
            head_size = None
        d_head = (
            few.check("head_dim", head_size) if head_size else sizes["d_model"] // sizes["n_heads"]
        )
        scale = real(facts, "query_pre_attn_scalar")
        choices = {
            "dropout": 0.0,
            "attention_dropout": facts.get("attention_dropout") or 0.0,
            "activation": self._gate(facts),
            "positions": "rotary",
            "tie_embeddings": facts["tie_word_embeddings"],
            "pad_id": padding_of(facts),
            **text_ids(facts),
            "bias": facts.get("attention_bias", False),
            "norm": "rms",
            "norm_epsilon": facts["rms_norm_eps"],
            "n_kv_heads": facts.get("num_key_value_heads") or sizes["n_heads"],
            "scale_embedding": False,
            "head_size": head_size,
            "query_scale": None if scale == d_head else scale,
            **{our: real(facts, their) for their, our in CAPS.items()},
        }
        return (ModelConfig(**sizes, **choices | self._layers(facts, d_head) | dict(self.ours)),)

    def _gate(self, facts: Facts) -> str:
        """Return our name of the feed-forward network's gate."""
        name = facts[self.activation]
        if self.model_type == "gemma" and name == "gelu":  # as its first files say, and mean
            name = THEIR_GATES["geglu"]
        gate = GATES.get(OUR_ACTIVATIONS.get(name))
        if gate is None:
            raise ValueError(
                f"{self.activation} is {name!r}, but our gated networks have only "
                f"{' and '.join(THEIR_GATES.values())}: this checkpoint would compute something "
                "else."
            )
        return gate

    def _layers(self, facts: Facts, d_head: int) -> dict[str, Any]:
        """Return our fields of what differs from layer to layer: windows and rotations."""
        layers = range(facts["num_hidden_layers"])
        turned = facts.get("no_rope_layers") or ()
        if not turned and (interval := facts.get("no_rope_layer_interval")):
            few.check("num_hidden_layers", len(layers))
            turned = [(i + 1) % interval for i in layers]
        unturned = tuple(i for i in layers[: len(turned)] if not turned[i])
        fields = {"layers_without_positions": unturned} | rotation(
            facts, d_head, "partial_rotary_factor" in self.reads
        )
        window = facts.get("sliding_window") if facts.get("use_sliding_window", True) else None
        if not window:
            return fields | {"window_rotary_base": None}
        few.check("num_hidden_layers", len(layers))
        types = facts.get("layer_types")
        if types is None:
            types = [LOCAL if self._is_local(facts, i, unturned) else FULL for i in layers]
        if len(types) != len(layers) or set(types) - {FULL, LOCAL}:
            raise ValueError(
                f"layer_types is {str(types)[:80]}, but it must say {FULL} or {LOCAL} of each of "
                f"{len(layers)} layers: this checkpoint would compute something else."
            )
        everything = tuple(i for i, kind in enumerate(types) if kind == FULL)
        size.check("sliding_window", window)
        return fields | {"attention_window": window, "layers_without_window": everything}

    def _is_local(self, facts: Facts, i: int, unturned: tuple[int, ...]) -> bool:
        """Whether layer i has a window, in a file that does not say it of each layer."""
        if "no_rope_layers" in self.reads:
            return i in unturned
        every, first = facts.get("sliding_window_pattern"), facts.get("max_window_layers", 0)
        return i >= first and (not every or (i + 1) % every > 0)

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        c = model.config
        switches = {
            "attention_bias": c.bias,
            "sliding_window": c.attention_window,
            "use_sliding_window": c.attention_window is not None,
            "layer_types": [LOCAL if window else FULL for window in c.windows],
            "no_rope_layers": [int(i not in c.layers_without_positions) for i in range(c.n_layers)],
            "query_pre_attn_scalar": round(c.query_scale or c.d_head),
            **{their: getattr(c, our) for their, our in CAPS.items()},
        }
        known = {*self.reads, *self.defaults}
        return {
            **{their: getattr(c, our) for their, our in SIZES.items()},
            "num_key_value_heads": c.n_kv_heads or c.n_heads,
            self.activation: THEIR_GATES.get(c.activation, "silu"),
            "head_dim": c.d_head,
            "attention_dropout": c.attention_dropout,
            "rms_norm_eps": c.norm_epsilon,
            "rope_parameters": rope_parameters(c),
            "tie_word_embeddings": c.tie_embeddings,
            **{name: value for name, value in switches.items() if name in known},
            **their_ids(c),
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out the tables of angles that old files hold."""
        return {name: tensor for name, tensor in tensors.items() if "rotary_emb" not in name}

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.config.tie_embeddings
        return {"model.embed_tokens.weight": ("lm_head.weight",)} if tied else {}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Take 1 from gammas, and put matrices on top of each other, as the family stores them."""
        packed = {}
        for name, weight in weights.items():
            if self.plus_one and "norm" in name:
                packed[name] = (weight.double() - 1).to(weight.dtype)
            elif self.fused and (of := FIRST.search(name)):
                parts, together = FUSED[of[1]]
                same = [weights[name.replace(of[1], part)] for part in parts]
                packed[name.replace(of[1], together)] = torch.cat(same)
            elif not (self.fused and OTHERS.search(name)):
                packed[name] = weight
        return packed

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        weights = {}
        for name, tensor in tensors.items():
            if self.plus_one and "norm" in name:
                weights[name] = tensor.double() + 1  # to float32 later: rounded once
            elif self.fused and "qkv_proj" in name:
                n = tensors[name.replace("qkv_proj", "o_proj")].size(1)  # numbers of all queries
                n_keys = (len(tensor) - n) // 2
                weights |= _apart("q_proj", name, tensor.split([n, n_keys, n_keys]))
            elif self.fused and "gate_up_proj" in name:
                weights |= _apart("gate_proj", name, tensor.chunk(2))
            else:
                weights[name] = tensor
        return weights


def _apart(first: str, name: str, tensors: tuple[torch.Tensor, ...]) -> Tensors:
    parts, together = FUSED[first]
    names = [name.replace(together, part) for part in parts]
    return dict(zip(names, tensors, strict=True))


QWEN_WINDOWS = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
GEMMAS = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "head_dim": 256}
GEMMAS |= {"num_key_value_heads": 4, "tie_word_embeddings": True}
GEMMAS |= {"hidden_activation": "gelu_pytorch_tanh"}
GEMMA_SWITCHES = ("attention_bias", "sliding_window", "layer_types", "query_pre_attn_scalar", *CAPS)
NOTHING = {"bos_token_id": None, "eos_token_id": None}
RELATIVES = (
    LlamaFamily(),
    LlamaFamily(
        "Mistral",
        "mistral",
        "MistralForCausalLM",
        reads=("sliding_window",),
        defaults={"sliding_window": 4096, "num_key_value_heads": 8},
    ),
    LlamaFamily(
        "Qwen 2",
        "qwen2",
        "Qwen2ForCausalLM",
        ours={"bias": True, "output_bias": False},
        reads=("sliding_window", "layer_types"),
        defaults=QWEN_WINDOWS | NOTHING | {"num_key_value_heads": 32},
    ),
    LlamaFamily(
        "Qwen 3",
        "qwen3",
        "Qwen3ForCausalLM",
        ours={"qk_norm": "head"},
        reads=("attention_bias", "sliding_window", "layer_types"),
        defaults=QWEN_WINDOWS | NOTHING | {"num_key_value_heads": 32, "head_dim": 128},
    ),
    LlamaFamily(
        "Gemma",
        "gemma",
        "GemmaForCausalLM",
        ours={"scale_embedding": True},
        defaults=GEMMAS | {"num_key_value_heads": 16, "hidden_act": "gelu_pytorch_tanh"},
        plus_one=True,
    ),
    LlamaFamily(
        "Gemma 2",
        "gemma2",
        "Gemma2ForCausalLM",
        ours={"scale_embedding": True, "norm_position": "both"},
        reads=GEMMA_SWITCHES,
        defaults=GEMMAS
        | {"sliding_window": 4096, "sliding_window_pattern": 2, "query_pre_attn_scalar": 256}
        | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
        activation="hidden_activation",
        plus_one=True,
    ),
    LlamaFamily(
        "Gemma 3",
        "gemma3_text",
        "Gemma3ForCausalLM",
        ours={"scale_embedding": True, "norm_position": "both", "qk_norm": "head"},
        reads=GEMMA_SWITCHES,
        defaults=GEMMAS
        | {"sliding_window": 4096, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256}
        | {"rope_theta": 1e6, "rope_local_base_freq": 1e4},
        activation="hidden_activation",
        plus_one=True,
    ),
    LlamaFamily(
        "OLMo 2",
        "olmo2",
        "Olmo2ForCausalLM",
        ours={"norm_position": "output", "qk_norm": "all"},
        defaults={"bos_token_id": None, "eos_token_id": 50279, "pad_token_id": 1}
        | {"rms_norm_eps": 1e-5},
    ),
    LlamaFamily(
        "Phi-3",
        "phi3",
        "Phi3ForCausalLM",
        reads=("sliding_window", "partial_rotary_factor"),
        defaults={"eos_token_id": 32000, "pad_token_id": 32000, "rms_norm_eps": 1e-5},
        fused=True,
    ),
    LlamaFamily(
        "SmolLM3",
        "smollm3",
        "SmolLM3ForCausalLM",
        reads=("attention_bias", "sliding_window", "layer_types", "no_rope_layers"),
        defaults={"bos_token_id": 128000, "eos_token_id": 128001, "pad_token_id": 128004}
        | {"num_key_value_heads": 4, "rope_theta": 2e6, "tie_word_embeddings": True}
        | {"use_sliding_window": False, "no_rope_layer_interval": 4},
    ),
)
"""The families whose parts are a Llama's, and fields of `ModelConfig`."""
