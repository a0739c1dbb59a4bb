"""Small GGUF files, written with `struct` alone: whole ones, and whatever a liar would write."""

import struct

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8
NUMBERS = {np.dtype(t): kind for t, kind in (("<u4", 4), ("<i4", 5), ("<f4", 6), ("<u8", 10))}


def text(characters: str | bytes) -> bytes:
    data = characters if isinstance(characters, bytes) else characters.encode()
    return struct.pack("<Q", len(data)) + data


def value(of) -> bytes:
    if isinstance(of, bool):
        return struct.pack("<I?", 7, of)
    if isinstance(of, int):
        return struct.pack("<II", 4, of)
    if isinstance(of, float):
        return struct.pack("<If", 6, of)
    if isinstance(of, str):
        return struct.pack("<I", 8) + text(of)
    if isinstance(of, np.ndarray):
        return struct.pack("<IIQ", 9, NUMBERS[of.dtype], len(of)) + of.tobytes()
    return struct.pack("<IIQ", 9, 8, len(of)) + b"".join(map(text, of))


def pair(key: str, of) -> bytes:
    return text(key) + value(of)


def row(name: str | bytes, axes: tuple[int, ...], kind: int, offset: int) -> bytes:
    """What the table says of a tensor; axes as GGUF has them, the fastest first."""
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, offset)


def whole(pairs: list[bytes], rows: list[bytes], data: bytes, alignment: int = 32) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs)) + b"".join(pairs + rows)
    return head + bytes(-len(head) % alignment) + data


def as_q4_1(tensor: np.ndarray) -> bytes:
    """Each run of 32 numbers on 16 levels: the scale, the smallest, and the steps."""
    data = b""
    for block in tensor.reshape(-1, 32):
        scale, smallest = np.float16(np.ptp(block) / 15), np.float16(block.min())
        steps = ((block - smallest) / scale).round().clip(0, 15).astype(np.uint8)
        data += scale.tobytes() + smallest.tobytes() + (steps[:16] | steps[16:] << 4).tobytes()
    return data


def gguf(metadata: dict, tensors: dict[str, np.ndarray], alignment: int = 32, q4_1=()) -> bytes:
    rows, data = [], b""
    for name, tensor in tensors.items():
        data += bytes(-len(data) % alignment)
        rows.append(row(name, tensor.shape[::-1], Q4_1 if name in q4_1 else F32, len(data)))
        data += as_q4_1(tensor) if name in q4_1 else tensor.astype("<f4").tobytes()
    return whole([pair(*item) for item in metadata.items()], rows, data, alignment)
