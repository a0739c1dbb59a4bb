"""How a GGUF file stores numbers: in full, in halves, or quantized in blocks.

A block of 32 numbers (Q4_0 to Q8_0) keeps a few bits for each number, its *step*, and shares one
scale; the formats that end in _1 share a smallest number, too. A block of 256 (the "K" formats)
shares one scale, and each run of 16 or 32 within it has another one, itself in a few bits.

Each function returns float32 numbers, (block, numbers), of raw bytes, (block, bytes).

Source: ggml's src/ggml-common.h (what is in a block) and src/ggml-quants.c (what it stands for).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

Parts = tuple[
    UInt8[Tensor, "block numbers"], Float[Tensor, "block runs"], Float[Tensor, "block runs"]
]
"""Steps from 0 to 15, and of each run of 32 the scale and the smallest number."""
TWO_BITS = torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]
EIGHT_BITS = torch.arange(8, dtype=torch.uint8)[:, None]


def numbers_f32(blocks: UInt8[Tensor, "block 4"]) -> Float[Tensor, "block 1"]:
    """Return numbers that are stored in full."""
    return blocks.view(torch.float32)


def numbers_f16(blocks: UInt8[Tensor, "block 2"]) -> Float[Tensor, "block 1"]:
    """Return numbers that are stored in half precision."""
    return blocks.view(torch.float16).float()


def numbers_bf16(blocks: UInt8[Tensor, "block 2"]) -> Float[Tensor, "block 1"]:
    """Return numbers that are stored as bfloat16."""
    return blocks.view(torch.bfloat16).float()


def _half(blocks: UInt8[Tensor, "block _"], start: int) -> Float[Tensor, "block 1"]:
    """Return the float16 number that begins at this byte of each block."""
    return blocks[:, start : start + 2].view(torch.float16).float()


def _lower_then_upper(pairs: UInt8[Tensor, "*a n"]) -> UInt8[Tensor, "*a twice_n"]:
    """Return the lower four bits of each byte, then the upper four of each."""
    return torch.cat([pairs & 15, pairs >> 4], dim=-1)


def _bits(few: UInt8[Tensor, "block 4"]) -> UInt8[Tensor, "block 32"]:
    """Return each bit of four bytes, the lowest first."""
    return (few[..., None] >> EIGHT_BITS[:, 0] & 1).flatten(1)


def dequantize_q8_0(blocks: UInt8[Tensor, "block 34"]) -> Float[Tensor, "block 32"]:
    """Return scale * step for each number of each block.

    Args:
        blocks: 34 bytes each: 2 for the scale (float16), 32 for the steps (int8, -128 to 127).

    Source: ggml, `block_q8_0`.
    """
    return _half(blocks, 0) * blocks[:, 2:].view(torch.int8).float()


def dequantize_q4_0(blocks: UInt8[Tensor, "block 18"]) -> Float[Tensor, "block 32"]:
    """Return scale * (step - 8): 2 bytes for the scale, 16 for the steps (0 to 15)."""
    steps, scale, _ = parts_q4_0(blocks)
    return scale * (steps.float() - 8)


def parts_q4_0(blocks: UInt8[Tensor, "block 18"]) -> Parts:
    """Return what `parts_q4_1` does: the smallest number is step 0's."""
    scale = _half(blocks, 0)
    return _lower_then_upper(blocks[:, 2:]), scale, -8 * scale


def dequantize_q4_1(blocks: UInt8[Tensor, "block 20"]) -> Float[Tensor, "block 32"]:
    """Return scale * step + smallest for each number of each block.

    Args:
        blocks: 20 bytes each: 2 for the scale and 2 for the block's smallest number (float16),
            16 for the steps (0 to 15). A byte holds two of these: its lower half a step of the
            first 16 numbers, its upper half one of the last 16.

    Source: ggml, `block_q4_1`.
    """
    steps, scale, smallest = parts_q4_1(blocks)
    return scale * steps + smallest


def parts_q4_1(blocks: UInt8[Tensor, "block 20"]) -> Parts:
    """Return the steps, the scale and the smallest number of each block."""
    scale = blocks[:, 0:2].view(torch.float16).float()
    smallest = blocks[:, 2:4].view(torch.float16).float()
    pairs = blocks[:, 4:]  # (block, 16)
    return torch.cat([pairs & 15, pairs >> 4], dim=1), scale, smallest


def dequantize_q5_0(blocks: UInt8[Tensor, "block 22"]) -> Float[Tensor, "block 32"]:
    """Return scale * (step - 16): scale, 4 bytes of fifth bits, 16 bytes of the other four."""
    steps = _lower_then_upper(blocks[:, 6:]) | _bits(blocks[:, 2:6]) << 4
    return _half(blocks, 0) * (steps.float() - 16)


def dequantize_q5_1(blocks: UInt8[Tensor, "block 24"]) -> Float[Tensor, "block 32"]:
    """Return scale * step + smallest: both, 4 bytes of fifth bits, 16 bytes of the other four."""
    steps = _lower_then_upper(blocks[:, 8:]) | _bits(blocks[:, 4:8]) << 4
    return _half(blocks, 0) * steps.float() + _half(blocks, 2)


def dequantize_q2_k(blocks: UInt8[Tensor, "block 84"]) -> Float[Tensor, "block 256"]:
    """Return scale * run's scale * step - smallest * run's smallest, for runs of 16.

    Args:
        blocks: 16 bytes for the runs, four bits for the scale and four for the smallest of each;
            64 for the steps (0 to 3), four to a byte; 2 for the scale, 2 for the smallest.
    """
    scales, smallest = (
        few[..., None].float() for few in (blocks[:, :16] & 15, blocks[:, :16] >> 4)
    )
    steps = (blocks[:, 16:80].view(-1, 2, 1, 32) >> TWO_BITS & 3).view(-1, 16, 16).float()
    scale, least = _half(blocks, 80)[..., None], _half(blocks, 82)[..., None]
    return (scale * scales * steps - least * smallest).flatten(1)


def dequantize_q3_k(blocks: UInt8[Tensor, "block 110"]) -> Float[Tensor, "block 256"]:
    """Return scale * (run's scale - 32) * (step - 4), for runs of 16.

    Args:
        blocks: 32 bytes for the third bits of the steps, 64 for the lower two; 12 for the runs'
            scales, six bits each; 2 for the scale.
    """
    low = (blocks[:, 32:96].view(-1, 2, 1, 32) >> TWO_BITS & 3).view(-1, 8, 32)
    third = blocks[:, None, :32] >> EIGHT_BITS & 1
    steps = (low | third << 2).view(-1, 16, 16).float() - 4
    four, two = _lower_then_upper(blocks[:, 96:104]), blocks[:, None, 104:108] >> TWO_BITS & 3
    scales = (four | two.flatten(1) << 4).float()[..., None] - 32
    return (_half(blocks, 108)[..., None] * scales * steps).flatten(1)


def dequantize_q4_k(blocks: UInt8[Tensor, "block 144"]) -> Float[Tensor, "block 256"]:
    """Return scale * run's scale * step - smallest * run's smallest, for runs of 32.

    Args:
        blocks: 2 bytes for the scale, 2 for the smallest; 12 for the runs', six bits each; 128 for
            the steps (0 to 15): the lower halves of 32 bytes are a run, the upper ones the next.
    """
    return _with_smallest(blocks, _runs_of_32(blocks[:, 16:]))


def parts_q4_k(blocks: UInt8[Tensor, "block 144"]) -> Parts:
    """Return the steps, and the scale and the smallest number of each run of 32."""
    scale, smallest = _scale_and_smallest(blocks)
    return _runs_of_32(blocks[:, 16:]).flatten(1), scale, smallest


def dequantize_q5_k(blocks: UInt8[Tensor, "block 176"]) -> Float[Tensor, "block 256"]:
    """Return what Q4_K does, of steps from 0 to 31: 32 bytes before the others hold fifth bits."""
    fifth = blocks[:, None, 16:48] >> EIGHT_BITS & 1
    return _with_smallest(blocks, _runs_of_32(blocks[:, 48:]) | fifth << 4)


def _runs_of_32(pairs: UInt8[Tensor, "block 128"]) -> UInt8[Tensor, "block 8 32"]:
    pairs = pairs.view(-1, 4, 32)
    return torch.stack([pairs & 15, pairs >> 4], dim=2).view(-1, 8, 32)


def _with_smallest(
    blocks: UInt8[Tensor, "block _"], steps: UInt8[Tensor, "block 8 32"]
) -> Float[Tensor, "block 256"]:
    """Return the numbers of Q4_K and Q5_K, whose first 16 bytes are alike."""
    scale, smallest = _scale_and_smallest(blocks)
    return (scale[..., None] * steps.float() + smallest[..., None]).flatten(1)


def _scale_and_smallest(
    blocks: UInt8[Tensor, "block _"],
) -> tuple[Float[Tensor, "block 8"], Float[Tensor, "block 8"]]:
    """Return each run's scale and smallest number, of Q4_K and Q5_K."""
    a, b, c = blocks[:, 4:16].view(-1, 3, 4).unbind(1)
    scales = torch.cat([a & 63, c & 15 | a >> 6 << 4], dim=1).float()
    smallest = torch.cat([b & 63, c >> 4 | b >> 6 << 4], dim=1).float()
    return _half(blocks, 0) * scales, -_half(blocks, 2) * smallest


def dequantize_q6_k(blocks: UInt8[Tensor, "block 210"]) -> Float[Tensor, "block 256"]:
    """Return scale * run's scale * (step - 32), for runs of 16.

    Args:
        blocks: 128 bytes for the lower four bits of the steps, 64 for the upper two; 16 for the
            runs' scales (int8); 2 for the scale.
    """
    low = blocks[:, :128].view(-1, 2, 64)
    low = torch.stack([low & 15, low >> 4], dim=2).view(-1, 8, 32)
    high = (blocks[:, 128:192].view(-1, 2, 1, 32) >> TWO_BITS & 3).view(-1, 8, 32)
    steps = (low | high << 4).view(-1, 16, 16).float() - 32
    scales = blocks[:, 192:208].view(torch.int8).float()[..., None]
    return (_half(blocks, 208)[..., None] * scales * steps).flatten(1)


class Format(NamedTuple):
    """How numbers are stored: numbers per block, bytes per block, and how to read them."""

    name: str
    numbers: int
    n_bytes: int
    dequantize: Callable[[Tensor], Tensor]


FORMATS = {
    0: Format("F32", 1, 4, numbers_f32),
    1: Format("F16", 1, 2, numbers_f16),
    2: Format("Q4_0", 32, 18, dequantize_q4_0),
    3: Format("Q4_1", 32, 20, dequantize_q4_1),
    6: Format("Q5_0", 32, 22, dequantize_q5_0),
    7: Format("Q5_1", 32, 24, dequantize_q5_1),
    8: Format("Q8_0", 32, 34, dequantize_q8_0),
    10: Format("Q2_K", 256, 84, dequantize_q2_k),
    11: Format("Q3_K", 256, 110, dequantize_q3_k),
    12: Format("Q4_K", 256, 144, dequantize_q4_k),
    13: Format("Q5_K", 256, 176, dequantize_q5_k),
    14: Format("Q6_K", 256, 210, dequantize_q6_k),
    30: Format("BF16", 1, 2, numbers_bf16),
}
"""The formats that can be read here, by their number in a file."""

OTHERS = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S"}
OTHERS |= {20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32"}
OTHERS |= {27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
"""Names of those that cannot."""

FOUR_BITS = {"Q4_0": parts_q4_0, "Q4_1": parts_q4_1, "Q4_K": parts_q4_k}
"""The formats whose numbers are scale * step + smallest, with steps from 0 to 15."""
