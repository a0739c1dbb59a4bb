"""Gemma 3's block in functions of its weights, as `model.llama` has Llama's: every step a formula.

Four things differ from Llama's block: a norm behind each sub-layer as well, norms of each head's
queries and keys, GELU in the gate, and a mask and a base that differ from block to block.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.attention import (
    merge_heads,
    repeat_kv,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.norm import rms_norm
from transformer_lesson.model.positions import apply_rotary
from transformer_lesson.model.transformers import DecoderOnlyTransformer


class GemmaBlock(NamedTuple):
    """The weights of one block, as matrices that multiply from the right, and its numbers.

    Args:
        before_1, behind_1: gamma of the norms before and behind attention, shape (d_model,).
        W_Q: shape (d_model, n_heads * d_head).
        W_K, W_V: shape (d_model, n_kv_heads * d_head).
        W_O: shape (n_heads * d_head, d_model).
        norm_Q, norm_K: gamma of the norms of each head's queries and keys, shape (d_head,).
        before_2, behind_2: gamma of the norms before and behind the network, shape (d_model,).
        W_gate, W_up: shape (d_model, d_ff).
        W_down: shape (d_ff, d_model).
        n_heads: query heads.
        n_kv_heads: key heads, and value heads; each serves n_heads / n_kv_heads query heads.
        base: of the rotary angles.
    """

    before_1: Tensor
    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    norm_Q: Tensor
    norm_K: Tensor
    behind_1: Tensor
    before_2: Tensor
    W_gate: Tensor
    W_up: Tensor
    W_down: Tensor
    behind_2: Tensor
    n_heads: int
    n_kv_heads: int
    base: float

    def __repr__(self) -> str:
        d_model, d_ff = self.W_gate.shape
        return (
            f"GemmaBlock(d_model {d_model}, d_head {len(self.norm_Q)}, d_ff {d_ff}, n_heads "
            f"{self.n_heads}, n_kv_heads {self.n_kv_heads}, base {self.base:g})"
        )


def geglu(
    x: Float[Tensor, "*batch d_model"],
    W_gate: Float[Tensor, "d_model d_ff"],
    W_up: Float[Tensor, "d_model d_ff"],
    W_down: Float[Tensor, "d_ff d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """(gelu(x W_gate) * x W_up) W_down: `swiglu` with GELU, in its approximation by tanh.

    Source: Shazeer, "GLU Variants Improve Transformer" (2020), equation 6.
    """
    return (ACTIVATIONS["gelu_tanh"](x @ W_gate) * (x @ W_up)) @ W_down


def gemma_block(
    x: Float[Tensor, "batch n d_model"],
    block: GemmaBlock,
    mask: Tensor,
    positions: Int[Tensor, " n"],
) -> Float[Tensor, "batch n d_model"]:
    """Return x after both sub-layers.

    Args:
        x: shape (batch, n, d_model).
        block: its weights.
        mask: `True` = may attend; broadcasts to (batch, head, query, key).
        positions: position of each token, shape (n,).

    Source: Gemma Team, "Gemma 3 Technical Report" (2025), section 2; the order of the steps as in
        the library's modeling_gemma3.py.
    """

    def attend(h):
        """Return what the heads bring to each token, (batch, n, d_model)."""
        n_groups = block.n_heads // block.n_kv_heads
        Q = split_heads(h @ block.W_Q, block.n_heads)  # (batch, head, n, d_head)
        K, V = (split_heads(h @ W, block.n_kv_heads) for W in (block.W_K, block.W_V))
        Q, K = rms_norm(Q, block.norm_Q, 1e-6), rms_norm(K, block.norm_K, 1e-6)
        Q, K = (apply_rotary(heads, positions, block.base) for heads in (Q, K))
        K, V = repeat_kv(K, n_groups), repeat_kv(V, n_groups)  # as many heads as Q
        heads, _ = scaled_dot_product_attention(Q, K, V, mask)
        return merge_heads(heads) @ block.W_O

    found = attend(rms_norm(x, block.before_1, 1e-6))
    x = x + rms_norm(found, block.behind_1, 1e-6)
    written = geglu(rms_norm(x, block.before_2, 1e-6), block.W_gate, block.W_up, block.W_down)
    return x + rms_norm(written, block.behind_2, 1e-6)


def gemma_block_of(model: DecoderOnlyTransformer, i: int) -> GemmaBlock:
    """Return the weights of block i of a model of Gemma 3's kind: the same numbers in memory."""
    c, block = model.config, model.decoder[i]
    attention, network = block.self_attention, block.feed_forward
    matrices = [getattr(attention, name).weight.T for name in ("W_Q", "W_K", "W_V", "W_O")]
    gates = [getattr(network, name).weight.T for name in ("W_gate", "W_up", "W_down")]
    (before_1, behind_1), (before_2, behind_2) = (_gammas(n) for n in (block.norm_1, block.norm_2))
    heads = attention.norm_Q.weight, attention.norm_K.weight
    base = c.window_rotary_base if c.windows[i] and c.window_rotary_base else c.rotary_base
    return GemmaBlock(
        before_1, *matrices, *heads, behind_1, before_2, *gates, behind_2,
        c.n_heads, c.n_kv_heads or c.n_heads, base,
    )  # fmt: skip


def _gammas(norms: nn.ModuleList) -> tuple[Tensor, Tensor]:
    before, behind = norms
    return before.weight, behind.weight


def read_with(
    function: Callable, model: DecoderOnlyTransformer, ids: Int[Tensor, "batch n"]
) -> Float[Tensor, "batch vocab_size"]:
    """Return the last token's logits, with a function of your own in place of every block.

    Args:
        function: `gemma_block`, or one with its arguments.
        model: of Gemma 3's kind.
        ids: token ids.
    """
    n, x = ids.size(1), model.embedding(ids)
    for i, window in enumerate(model.config.windows):
        mask = window_mask(n, window) if window else causal_mask(n)
        x = function(x, gemma_block_of(model, i), mask, torch.arange(n))
    return model.read_out(x[:, -1])
