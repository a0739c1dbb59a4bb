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
