"""What learners might write for the exercises of lesson 12."""

import struct

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.feed_forward import swiglu
from transformer_lesson.model.norm import rms_norm
from transformer_lesson.model.positions import apply_rotary


@right("dequantize_q4_1")
def _(blocks):
    rows = []
    for block in blocks.tolist():
        scale, smallest = struct.unpack("<2e", bytes(block[:4]))
        steps = [byte % 16 for byte in block[4:]] + [byte // 16 for byte in block[4:]]
        rows.append([scale * step + smallest for step in steps])
    return torch.tensor(rows)


@right("dequantize_q4_1")
def _(blocks):
    header = blocks[:, :4].contiguous().view(torch.float16).float()
    packed = blocks[:, 4:].int()
    numbers = torch.empty(len(blocks), 32)
    numbers[:, :16] = packed.bitwise_and(0b1111)
    numbers[:, 16:] = packed // 16
    return numbers.mul_(header[:, :1]).add_(header[:, 1:])


@wrong("dequantize_q4_1", "unusual", "takes the smallest number for the middle")
def _(blocks):
    scale = blocks[:, 0:2].view(torch.float16).float()
    middle = blocks[:, 2:4].view(torch.float16).float()
    steps = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)
    return (steps.float() - 7.5) * scale + middle


@right("chat_prompt")
def _(tokenizer, messages):
    start, end = map(tokenizer.vocabulary.get, ("<|im_start|>", "<|im_end|>"))
    parts = [[start, *tokenizer.encode("\n".join(pair)), end] for pair in messages]
    parts.append([start, *tokenizer.encode("assistant")])
    line_break = tokenizer.encode("\n")
    return [id_ for part in parts for id_ in part + line_break]


@right("llama_block")
def _(x, block, mask, positions):
    """Without a function of the course: complex numbers rotate, einsum groups the heads."""
    batch, n, d_model = x.shape
    d_head, groups = d_model // block.n_heads, block.n_heads // block.n_kv_heads
    h = F.rms_norm(x, (d_model,), block.norm_1, 1e-5)
    Q = (h @ block.W_Q).view(batch, n, block.n_kv_heads, groups, d_head)
    K, V = ((h @ W).view(batch, n, block.n_kv_heads, d_head) for W in (block.W_K, block.W_V))
    pairs = torch.arange(d_head // 2) * 2 / d_head
    angle = positions[:, None] / block.base**pairs
    turn = torch.polar(torch.ones_like(angle), angle)

    def rotate(vectors, turn):
        turned = torch.complex(*vectors.chunk(2, dim=-1)) * turn
        return torch.cat([turned.real, turned.imag], dim=-1)

    Q, K = rotate(Q, turn[:, None, None]), rotate(K, turn[:, None])
    scores = torch.einsum("bqhgd,bkhd->bhgqk", Q, K) / d_head**0.5
    weights = scores.masked_fill(~mask[:, :, None], -torch.inf).softmax(-1).nan_to_num(0.0)
    found = torch.einsum("bhgqk,bkhd->bqhgd", weights, V).reshape(batch, n, d_model)
    x = torch.addmm(x.flatten(0, 1), found.flatten(0, 1), block.W_O).view_as(x)
    h = F.rms_norm(x, (d_model,), block.norm_2, 1e-5)
    return x + torch.mul(F.silu(h @ block.W_gate), h @ block.W_up).matmul(block.W_down)


@right("llama_block")
def _(x, block, mask, positions):
    """Head by head; keys are rotated after they were repeated, and once for each head."""
    h = rms_norm(x, block.norm_1, 1e-5)
    d_head = h.size(-1) // block.n_heads
    found = torch.zeros_like(x)
    for head in range(block.n_heads):
        own = slice(head * d_head, (head + 1) * d_head)
        shared = head * block.n_kv_heads // block.n_heads
        theirs = slice(shared * d_head, (shared + 1) * d_head)
        q = apply_rotary(h @ block.W_Q[:, own], positions, block.base)
        k = apply_rotary(h @ block.W_K[:, theirs], positions, block.base)
        read = F.scaled_dot_product_attention(q, k, h @ block.W_V[:, theirs], mask[0, 0])
        found = found + read @ block.W_O[own]
    x = x + found
    return swiglu(rms_norm(x, block.norm_2, 1e-5), *block[6:9]) + x


@right("llama_block")
def _(x, block, mask, positions):
    """As a class would have it: two small functions that know nothing of residuals."""

    def heads(vectors, n_heads):
        return vectors.unflatten(-1, (n_heads, -1)).movedim(-2, 1)

    def attention(h):
        Q = apply_rotary(heads(h @ block.W_Q, block.n_heads), positions, block.base)
        K = apply_rotary(heads(h @ block.W_K, block.n_kv_heads), positions, block.base)
        V = heads(h @ block.W_V, block.n_kv_heads)
        read = F.scaled_dot_product_attention(Q, K, V, mask, enable_gqa=True)
        return read.movedim(1, -2).flatten(-2) @ block.W_O

    normed = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * block.norm_1
    x = attention(normed) + x
    normed = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * block.norm_2
    gate = normed @ block.W_gate
    return x + (gate / (1 + torch.exp(-gate)) * (normed @ block.W_up)) @ block.W_down
