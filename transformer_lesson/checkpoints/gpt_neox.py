"""GPT-NeoX and Pythia: LayerNorm, partial rotary positions, two sub-layers side by side.

Source: Black et al., "GPT-NeoX-20B" (2022), section 2.1; Biderman et al., "Pythia" (2023).
"""

import re
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    our_activation,
    padding_of,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.checkpoints.llama import NORMS, SIZES
from transformer_lesson.checkpoints.rotations import rope_parameters, rotation
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

RULES = (
    (r"^embedding\.weight$", "gpt_neox.embed_in.weight"),
    (r"^decoder_norm", "gpt_neox.final_layer_norm"),
    (r"^projection", "embed_out"),
    (r"^decoder\.", "gpt_neox.layers."),
    (r"self_attention\.W_O", "attention.dense"),
    (r"self_attention\.W_QKV", "attention.query_key_value"),
    (r"self_attention\.W_([QKV])", r"attention.\1"),
    (r"feed_forward\.W_1", "mlp.dense_h_to_4h"),
    (r"feed_forward\.W_2", "mlp.dense_4h_to_h"),
    *((ours, theirs) for ours, theirs, _ in NORMS["pre"]),
)
LAYERS = (
    ("embedding", "gpt_neox.emb_dropout"),
    ("decoder.{i}.self_attention", "gpt_neox.layers.{i}.attention"),
    ("decoder.{i}.feed_forward", "gpt_neox.layers.{i}.mlp"),
    ("decoder.{i}", "gpt_neox.layers.{i}"),
    ("decoder_norm", "gpt_neox.final_layer_norm"),
)
HEADS = {"lm_head.weight": "embed_out.weight"}
"""The library's newer name of the projection."""
FUSED, OTHERS = ".query_key_value.", re.compile(r"\.attention\.[KV]\.")
UNUSED = re.compile(r"\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$|rotary_emb\.inv_freq$")


class GPTNeoXFamily(Family):
    """GPT-NeoX's checkpoints.

    `norms`, `reads`, `plus_one` and `fused` say what they say in a `LlamaFamily`.
    """

    name, model_type, architecture = "GPT-NeoX", "gpt_neox", "GPTNeoXForCausalLM"
    norms, reads, plus_one, fused = NORMS["pre"], ("attention_bias",), False, False
    model, prefix, rules, layers = DecoderOnlyTransformer, "gpt_neox.", RULES, LAYERS

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a GPT-NeoX one."""
        older = {"rotary_emb_base": 10000.0, "rotary_pct": 0.25} | dict(facts)
        known = {
            "rope_theta": older["rotary_emb_base"],
            "partial_rotary_factor": older["rotary_pct"],
        }
        sizes = dict(zip(SIZES.values(), needed(facts, *SIZES), strict=True))
        require(facts, is_decoder=False)
        config = ModelConfig(
            **sizes,
            dropout=facts.get("hidden_dropout", 0.0),
            attention_dropout=facts.get("attention_dropout", 0.0),
            activation=our_activation(facts, "hidden_act", "gelu"),
            tie_embeddings=facts.get("tie_word_embeddings", False),
            pad_id=padding_of({"eos_token_id": 2, "bos_token_id": 0} | dict(facts)),
            **text_ids(facts, bos=0, eos=2),
            bias=facts.get("attention_bias", True),
            norm_epsilon=facts.get("layer_norm_eps", 1e-5),
            scale_embedding=False,
            positions="rotary",
            **rotation(known | dict(facts), sizes["d_model"] // sizes["n_heads"], partial=True),
            parallel=facts.get("use_parallel_residual", True),
        )
        return (config,)

    def write_config(self, model: nn.Module) -> dict[str, Any]:
        """Return config.json for one of our models."""
        c = model.config
        return {
            **{their: getattr(c, our) for their, our in SIZES.items()},
            "hidden_act": THEIR_ACTIVATIONS.get(c.activation),
            "hidden_dropout": c.dropout,
            "attention_dropout": c.attention_dropout,
            "layer_norm_eps": c.norm_epsilon,
            "attention_bias": c.bias,
            "rope_parameters": rope_parameters(c, says_all=True),
            "tie_word_embeddings": c.tie_embeddings,
            "use_parallel_residual": c.parallel,
            **their_ids(c),
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out masks and angles that old files hold; some call the head lm_head."""
        kept = {n: t for n, t in tensors.items() if not UNUSED.search(n)}
        return {HEADS.get(name, name): tensor for name, tensor in kept.items()}

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.config.tie_embeddings
        return {"gpt_neox.embed_in.weight": ("embed_out.weight",)} if tied else {}

    def pack(self, weights: Tensors, config: ModelConfig) -> Tensors:
        """Put each head's rows of queries, keys and values together: first all of head 0."""
        packed = {}
        for name, weight in weights.items():
            if ".attention.Q." in name:
                parts = [weights[name.replace(".Q.", f".{part}.")] for part in "QKV"]
                packed[name.replace(".Q.", ".query_key_value.")] = head_by_head(
                    torch.cat(parts), config.n_heads
                )
            elif not OTHERS.search(name):
                packed[name] = weight
        return packed

    def unpack(self, tensors: Tensors, config: ModelConfig) -> Tensors:
        """Undo `pack`."""
        weights = {}
        for name, tensor in tensors.items():
            if FUSED in name:
                heads = tensor.view(config.n_heads, 3, config.d_head, *tensor.shape[1:])
                for part, its in zip("QKV", heads.unbind(1), strict=True):
                    weights[name.replace(FUSED, f".{part}.")] = its.flatten(0, 1)
            else:
                weights[name] = tensor
        return weights


NEOX = GPTNeoXFamily()


def head_by_head(W: Tensor, n_heads: int) -> Tensor:
    """Reorder the rows of W_Q, W_K and W_V on top of each other: first all three of head 0.

    Args:
        W: shape (3 * n_heads * d_head, d_model), or the biases, shape (3 * n_heads * d_head,).
        n_heads: heads that the rows belong to.
    """
    parts = W.view(3, n_heads, -1, *W.shape[1:])  # (of Q, K, V, head, d_head, ...)
    return parts.transpose(0, 1).reshape(W.shape)
