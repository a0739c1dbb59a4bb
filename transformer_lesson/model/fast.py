"""The same numbers, faster: only here and in `packed` does code depend on device, dtype or vendor.

The model is written plainly in the other files. The code here computes the same in another way:
attention calls `attention`, and `train` learns inside `learning(model)`, which is applied from
outside. Fixed rules choose the way, not a clock: the same seed gives the same numbers.

TRANSFORMER_LESSON_PLAIN=1 in the environment switches all of it off, for those who want the same
arithmetic on every machine.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from types import MethodType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.model.masks import CAUSAL, Mask, check_mask

HALF = (torch.bfloat16, torch.float16)


def plain() -> bool:
    """Whether the environment asks for plain arithmetic."""
    return os.environ.get("TRANSFORMER_LESSON_PLAIN", "") not in ("", "0")


def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V by PyTorch's fused kernel, which never stores the weights.

    In half precision on a CPU the kernel's backward pass is slower than in float32: there a model
    learns in float32.

    Args:
        Q, K, V: shapes (batch, head, query, d_head) and twice (batch, kv_head, key, d_head);
            each head of keys and values serves head / kv_head heads of queries.
        mask: as `MultiHeadAttention` takes it.

    Source: Dao et al., "FlashAttention" (2022), algorithm 1.
    """
    if mask is not None and mask is not CAUSAL:
        check_mask(mask, (*Q.shape[:-1], K.size(-2)))
    learns = Q.requires_grad or torch.is_autocast_enabled("cpu")
    if learns and Q.dtype in HALF and Q.is_cpu and not (plain() or torch.compiler.is_compiling()):
        return _in_float32(Q, K, V, mask)
    return _fused(Q, K, V, mask)


def _fused(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    grouped = Q.size(1) != K.size(1)
    if mask is CAUSAL:
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=grouped)
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, enable_gqa=grouped)


def _in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
    with torch.autocast("cpu", enabled=False):  # which would turn them back to half precision
        return _fused(Q.float(), K.float(), V.float(), mask).to(Q.dtype)


@contextmanager
def learning(model: nn.Module) -> Iterator[None]:
    """Let a model's dropout on a CPU draw 16 random bits for each number, not 64.

    `nn.Dropout` draws a random number for each number of x; in a small model that is a third of a
    training step. A draw of 64 bits serves four numbers here, in a quarter to a third of the time
    on every processor that was tried.
    """
    dropouts = [layer for layer in model.modules() if type(layer) is nn.Dropout]
    changed = [] if plain() else [layer for layer in dropouts if "forward" not in vars(layer)]
    for layer in changed:
        layer.forward = MethodType(_few_bits, layer)
    try:
        yield
    finally:
        for layer in changed:
            vars(layer).pop("forward", None)  # back to the class's own


def _few_bits(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """Return x, thinned out in training and unchanged in evaluation."""
    cut = round(dropout.p * 2**16)  # how many of 65536 equally likely values mean "zero"
    close = abs(cut / 2**16 - dropout.p) <= 0.001 * min(dropout.p, 1 - dropout.p)
    if not (dropout.training and dropout.p > 0 and close and x.is_cpu):
        return F.dropout(x, dropout.p, dropout.training)
    draws = torch.empty(ceil(x.numel() / 4), dtype=torch.int64)
    bits = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()]  # -32768 ... 32767
    keep = bits.ge_(cut - 2**15).to(torch.int8).view(x.shape)  # int8 multiplies 4 times as fast
    return (x * keep).mul_(1 / (1 - cut / 2**16))
