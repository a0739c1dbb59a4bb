"""A Llama's block in functions of its weights, as `gpt` has GPT's: every step a formula.

Four things differ from GPT's block: RMSNorm, rotary positions (queries and keys are rotated, and
nothing is added to the embeddings), heads of keys and values that several query heads share, and
SwiGLU.
"""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from transformer_lesson.model.attention import (
    merge_heads,
    repeat_kv,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.blocks import EncoderBlock, residual_branch_pre
from transformer_lesson.model.config import LATER, ModelConfig
from transformer_lesson.model.feed_forward import swiglu
from transformer_lesson.model.norm import rms_norm
from transformer_lesson.model.positions import apply_rotary


class LlamaBlock(NamedTuple):
    """The weights of one block, as matrices that multiply from the right, and its numbers.

    Args:
        norm_1, norm_2: gamma of each sub-layer's norm, shape (d_model,).
        W_Q, W_O: shape (d_model, d_model).
        W_K, W_V: shape (d_model, n_kv_heads * d_head).
        W_gate, W_up: shape (d_model, d_ff).
        W_down: shape (d_ff, d_model).
        n_heads: query heads.
        n_kv_heads: key heads, and value heads; each serves n_heads / n_kv_heads query heads.
        base: of the rotary angles.
    """

    norm_1: Tensor
    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    norm_2: Tensor
    W_gate: Tensor
    W_up: Tensor
    W_down: Tensor
    n_heads: int
    n_kv_heads: int
    base: float

    def __repr__(self) -> str:
        d_model, d_ff = self.W_gate.shape
        return (
            f"LlamaBlock(d_model {d_model}, d_ff {d_ff}, n_heads {self.n_heads}, "
            f"n_kv_heads {self.n_kv_heads}, base {self.base:g})"
        )


LLAMAS = {
    "norm": "rms",
    "norm_epsilon": 1e-5,
    "norm_position": "pre",
    "positions": "rotary",
    "activation": "swiglu",
    "bias": False,
    "attention_window": None,
} | LATER
"""What `llama_block` computes."""


def llama_block_of(block: EncoderBlock, config: ModelConfig) -> LlamaBlock:
    """Return the weights of one block of a model: the same numbers in memory.

    Raises:
        ValueError: the model makes a choice that `llama_block` does not know.
    """
    for name, wanted in LLAMAS.items():
        if getattr(config, name) != wanted:
            raise ValueError(
                f"{name} is {getattr(config, name)!r}, but `llama_block` knows only {wanted!r}: "
                f"build the model with {name}={wanted!r}."
            )
    attention, network = block.self_attention, block.feed_forward
    matrices = [getattr(attention, name).weight.T for name in ("W_Q", "W_K", "W_V", "W_O")]
    gates = [getattr(network, name).weight.T for name in ("W_gate", "W_up", "W_down")]
    heads = config.n_heads, config.n_kv_heads or config.n_heads
    return LlamaBlock(
        block.norm_1.weight, *matrices, block.norm_2.weight, *gates, *heads, config.rotary_base
    )


def llama_block(
    x: Float[Tensor, "batch n d_model"],
    block: LlamaBlock,
    mask: Tensor,
    positions: Int[Tensor, " n"],
) -> Float[Tensor, "batch n d_model"]:
    """Return x after both sub-layers.

    Args:
        x: shape (batch, n, d_model).
        block: its weights.
        mask: `True` = may attend; broadcasts to (batch, head, query, key).
        positions: position of each token, shape (n,).

    Source: Touvron et al., "LLaMA" (2023), section 2.2; Ainslie et al., "GQA" (2023).
    """

    def attend(h):
        """Return what the heads bring to each token, (batch, n, d_model)."""
        n_groups = block.n_heads // block.n_kv_heads
        Q = split_heads(h @ block.W_Q, block.n_heads)  # (batch, head, n, d_head)
        K, V = (split_heads(h @ W, block.n_kv_heads) for W in (block.W_K, block.W_V))
        Q, K = (apply_rotary(heads, positions, block.base) for heads in (Q, K))
        K, V = repeat_kv(K, n_groups), repeat_kv(V, n_groups)  # as many heads as Q
        heads, _ = scaled_dot_product_attention(Q, K, V, mask)
        return merge_heads(heads) @ block.W_O

    x = residual_branch_pre(x, attend, lambda h: rms_norm(h, block.norm_1, 1e-5))
    return residual_branch_pre(
        x,
        lambda h: swiglu(h, block.W_gate, block.W_up, block.W_down),
        lambda h: rms_norm(h, block.norm_2, 1e-5),
    )
