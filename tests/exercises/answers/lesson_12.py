"""What learners might write for the exercises of lesson 12."""

import re
import struct

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("our_name")
def _(name):
    for pattern, new in (
        (r"^blk\.", "decoder."),
        (r"attn_norm", "norm_1"),
        (r"ffn_norm", "norm_2"),
        (r"attn_output", "self_attention.W_O"),
        (r"attn_([qkv])", lambda found: "self_attention.W_" + found[1].upper()),
        (r"ffn_", "feed_forward.W_"),
        (r"^output_norm", "decoder_norm"),
        (r"^token_embd", "embedding"),
    ):
        name = re.sub(pattern, new, name)
    return name


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


@right("most_similar")
def _(query, vectors, k):
    def cosine(i):
        v = vectors[i]
        return float(v @ query / (v.norm() * query.norm()))

    return sorted(range(len(vectors)), key=cosine, reverse=True)[:k]


@wrong("most_similar", "usual", "returns the cosines")
def _(query, vectors, k):
    return F.cosine_similarity(vectors, query[None]).topk(k).values
